import Glibc

/// The times that the kernel keeps of a file.
public enum FileTime {
  /// Gives a file a modification time of one's own making, and leaves its other times alone: who
  /// touches the file afterwards replaces it by the clock's.
  ///
  /// - Returns: Whether it could be done.
  public static func setModification(of path: String, seconds: Int, nanoseconds: Int) -> Bool {
    var times = (
      timespec(tv_sec: 0, tv_nsec: omitted), timespec(tv_sec: seconds, tv_nsec: nanoseconds)
    )
    return withUnsafePointer(to: &times) { pointer in
      pointer.withMemoryRebound(to: timespec.self, capacity: 2) {
        utimensat(AT_FDCWD, path, $0, 0) == 0
      }
    }
  }

  /// `UTIME_OMIT`, a macro that is not imported: leave that time alone.
  private static let omitted = (1 << 30) - 2
}
