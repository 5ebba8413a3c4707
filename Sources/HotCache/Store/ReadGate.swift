import Glibc

/// Many readers or one writer.
///
/// It stands in front of what must not happen while anybody reads: growing or closing a map, and
/// changing rows in memory.
final class ReadGate: @unchecked Sendable {
  // Unchecked: the lock is made in `init`, used through pthread alone, and freed in `deinit`.
  private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

  init() {
    var attributes = pthread_rwlockattr_t()
    pthread_rwlockattr_init(&attributes)
    // A writer that waits goes first, or readers who come one after another would keep it out for
    // ever. In return nobody may read within a read.
    let kind = PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
    pthread_rwlockattr_setkind_np(&attributes, Int32(kind))
    let made = pthread_rwlock_init(lock, &attributes)
    pthread_rwlockattr_destroy(&attributes)
    precondition(made == 0, "a read-write lock could not be made")
  }

  deinit {
    pthread_rwlock_destroy(lock)
    lock.deallocate()
  }

  func reading<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    pthread_rwlock_rdlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }

  func writing<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    pthread_rwlock_wrlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }
}
