import SyncCore

/// The client's end of a link, as the engine's actors use it.
final class SimulatedSocket: TransportLink, @unchecked Sendable {
  // Unchecked: as for the world it is in.
  typealias Reader = CheckedContinuation<Result<InboundFrame, TransportError>, Never>

  private static let bytesUnderwayMax = 64 << 10

  private let frameBytesMax: Int
  private var link: SimulatedLink?
  private var frames: [InboundFrame] = []
  private var head = 0
  private var reader: Reader?
  private var writers: [CheckedContinuation<Void, Never>] = []
  private var end: TransportError?

  init(frameBytesMax: Int) { self.frameBytesMax = frameBytesMax }

  /// What the link tells goes here from now on.
  func attach(_ link: SimulatedLink) {
    self.link = link
    link.onProgress = { [weak self] in self?.wakeWriters() }
  }

  /// Whether nothing will ever be read from it again.
  var isOver: Bool { end != nil && framesWaiting == 0 }

  /// How many frames nobody has read yet.
  var framesWaiting: Int { frames.count - head }

  // MARK: What the link tells

  func received(_ bytes: [UInt8]) {
    deliver(bytes.count > frameBytesMax ? .tooLarge(limit: frameBytesMax) : .message(bytes))
  }

  func ponged() { deliver(.pong) }

  func ended(_ error: TransportError) {
    guard end == nil else { return }
    end = error
    wakeWriters()
    guard head == frames.count, let reader else { return }
    self.reader = nil
    reader.resume(returning: .failure(error))
  }

  private func deliver(_ frame: InboundFrame) {
    guard end == nil else { return }
    guard let reader else { return frames.append(frame) }
    self.reader = nil
    reader.resume(returning: .success(frame))
  }

  private func wakeWriters() {
    let all = writers
    writers = []
    for writer in all { writer.resume() }
  }

  // MARK: What the engine asks for

  func receive() async throws(TransportError) -> InboundFrame {
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in register(continuation) }
    } onCancel: {
      let reader = reader
      self.reader = nil
      reader?.resume(returning: .failure(.cancelled))
    }
    return try result.get()
  }

  private func register(_ continuation: Reader) {
    if Task.isCancelled { return continuation.resume(returning: .failure(.cancelled)) }
    if head < frames.count {
      let frame = frames[head]
      head += 1
      if head == frames.count {
        frames.removeAll(keepingCapacity: true)
        head = 0
      }
      return continuation.resume(returning: .success(frame))
    }
    if let end { return continuation.resume(returning: .failure(end)) }
    precondition(reader == nil, "a link has one reader at a time")
    reader = continuation
  }

  func send(_ text: [UInt8]) async throws(TransportError) {
    if let end { throw end }
    link?.sendUp(text)
    // A line that does not take more makes its writer wait.
    while end == nil, let link, link.bytesUnderway > SimulatedSocket.bytesUnderwayMax {
      await withCheckedContinuation { writers.append($0) }
    }
    if let end { throw end }
  }

  func ping() async throws(TransportError) {
    if let end { throw end }
    link?.ping()
  }

  func close(code: UInt16) { drop(.closed(code: code, reason: "")) }

  func abandon() { drop(.cancelled) }

  private func drop(_ error: TransportError) {
    link?.closeFromClient()
    link = nil
    ended(error)
  }
}
