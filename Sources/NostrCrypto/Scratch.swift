import Glibc

/// What a thread keeps between two events so that checking one allocates nothing.
///
/// One a thread, freed with it: threads never wait for each other, and nothing is handed around.
final class Scratch {
  let digest = SHA256Stream()
  private var preimage: [UInt8] = []

  /// Runs `body` with the calling thread's own scratch.
  ///
  /// It is synchronous on purpose: after a suspension the thread would be another one.
  static func withCurrent<Result>(_ body: (Scratch) -> Result) -> Result {
    if let kept = pthread_getspecific(key) {
      return body(Unmanaged<Scratch>.fromOpaque(kept).takeUnretainedValue())
    }
    let made = Scratch()
    let kept = Unmanaged.passRetained(made)
    if pthread_setspecific(key, kept.toOpaque()) != 0 { kept.release() }
    return body(made)
  }

  /// Runs `body` with a buffer that keeps its capacity from event to event.
  func withBuffer<Result>(_ body: (inout [UInt8]) -> Result) -> Result {
    defer { if preimage.capacity > Scratch.bufferMax { preimage = [] } }
    return body(&preimage)
  }

  /// One huge event must not hold its memory for the life of a thread.
  private static let bufferMax = 1 << 20

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let made = pthread_key_create(&key) { kept in
      guard let kept else { return }
      Unmanaged<Scratch>.fromOpaque(kept).release()
    }
    precondition(made == 0, "the process has no thread-local key left")
    return key
  }()
}
