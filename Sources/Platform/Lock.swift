import Glibc

/// A mutual exclusion lock over a pthread mutex.
///
/// `Synchronization.Mutex` would do the same job, but the thread sanitiser does not see its
/// happens-before edges on Linux and reports races that are not there.
public final class Lock<Value>: @unchecked Sendable {
  // Unchecked: `value` is touched only between lock and unlock of `mutex`.
  private var value: Value
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  public init(_ value: sending Value) {
    self.value = value
    mutex = .allocate(capacity: 1)
    let made = pthread_mutex_init(mutex, nil)
    precondition(made == 0, "a mutex could not be made")
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Runs `body` with exclusive access to the value.
  ///
  /// - Complexity: O(1) beyond `body`; never call back into the same lock from `body`.
  public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
