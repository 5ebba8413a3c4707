import Glibc

/// Many readers or one writer.
///
/// It stands in front of what must not happen while anybody reads: growing or closing a map, and
/// changing rows in memory.
final class ReadGate: @unchecked Sendable {
  // Unchecked: the lock is made in `init`, used through pthread alone, and freed in `deinit`.
  private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

  init() {
    let made = pthread_rwlock_init(lock, nil)
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
