import Glibc

/// The kernel's lock on an open file. It goes with the process, however that ends.
public enum FileLock {
  /// Takes the lock for this descriptor alone, and waits for nobody who keeps it.
  ///
  /// Whoever only asks if it is held has it for that moment, so one refusal proves nothing.
  ///
  /// - Returns: Nil where it was taken; otherwise the system's error, `EWOULDBLOCK` where somebody
  ///   else has it.
  public static func take(_ descriptor: Int32) -> Int32? {
    for _ in 0..<100 {
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return nil }
      let problem = errno
      guard problem == EWOULDBLOCK else { return problem }
      sched_yield()
    }
    return EWOULDBLOCK
  }
}
