import Platform
import SyncCore

/// Sends the frames of one link in the order in which they were decided.
///
/// The machine decides faster than a full socket takes; what waits here is bounded by what the
/// machine lets be in flight.
final class FrameWriter: Sendable {
  private struct State {
    var frames: [[UInt8]] = []
    var isEnded = false
    var reader: CheckedContinuation<[[UInt8]]?, Never>?
  }

  private let state = Lock(State())

  func send(_ frame: [UInt8]) {
    let reader = state.withLock { state -> CheckedContinuation<[[UInt8]]?, Never>? in
      guard !state.isEnded else { return nil }
      guard let reader = state.reader else {
        state.frames.append(frame)
        return nil
      }
      state.reader = nil
      return reader
    }
    reader?.resume(returning: [frame])
  }

  func end() {
    let reader = state.withLock { state -> CheckedContinuation<[[UInt8]]?, Never>? in
      state.isEnded = true
      state.frames = []
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume(returning: nil)
  }

  /// Writes until `end`, or until the link fails, which its reader hears of.
  func run(_ link: any TransportLink) async {
    while let frames = await next() {
      do throws(TransportError) {
        try await link.send(frames)
      } catch {
        return end()
      }
    }
  }

  private func next() async -> [[UInt8]]? {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state -> [[UInt8]]?? in
        if state.isEnded { return .some(nil) }
        guard state.frames.isEmpty else {
          defer { state.frames = [] }
          return state.frames
        }
        state.reader = continuation
        return nil
      }
      if let ready { continuation.resume(returning: ready) }
    }
  }
}
