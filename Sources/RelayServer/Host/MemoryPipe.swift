import Platform
import SyncCore

/// One direction of a connection that exists in memory only, with room for a bounded number of
/// frames: a writer waits for its reader.
final class MemoryPipe: Sendable {
  private typealias Reader = CheckedContinuation<Result<InboundFrame, TransportError>, Never>
  private typealias Writer = CheckedContinuation<TransportError?, Never>

  private struct State {
    var frames: [InboundFrame] = []
    var reader: Reader?
    var writers: [(frame: InboundFrame, writer: Writer)] = []
    var end: TransportError?
  }

  private let framesMax: Int
  private let state = Lock(State())

  init(framesMax: Int) { self.framesMax = framesMax }

  func receive() async throws(TransportError) -> InboundFrame {
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in register(continuation) }
    } onCancel: {
      interruptReader()
    }
    return try result.get()
  }

  func send(_ frame: InboundFrame) async throws(TransportError) {
    let failure = await withCheckedContinuation { continuation in
      offer(frame, continuation)
    }
    if let failure { throw failure }
  }

  /// Ends the pipe; a reader gets what was sent before unless it is lost with the connection.
  func finish(_ error: TransportError, losesFrames: Bool) {
    let (reader, writers) = state.withLock { state -> (Reader?, [Writer]) in
      if losesFrames { state.frames.removeAll() }
      if state.end == nil { state.end = error }
      let reader = state.frames.isEmpty ? state.reader : nil
      if reader != nil { state.reader = nil }
      let writers = state.writers.map(\.writer)
      state.writers.removeAll()
      return (reader, writers)
    }
    reader?.resume(returning: .failure(error))
    for writer in writers { writer.resume(returning: error) }
  }

  private func register(_ continuation: Reader) {
    enum Step {
      case wait
      case frame(InboundFrame, Writer?)
      case end(TransportError)
    }
    let step = state.withLock { state -> Step in
      if Task.isCancelled { return .end(.cancelled) }
      if state.frames.isEmpty {
        if let end = state.end { return .end(end) }
        precondition(state.reader == nil, "a link has one reader at a time")
        state.reader = continuation
        return .wait
      }
      let frame = state.frames.removeFirst()
      guard !state.writers.isEmpty else { return .frame(frame, nil) }
      let next = state.writers.removeFirst()
      state.frames.append(next.frame)
      return .frame(frame, next.writer)
    }
    switch step {
    case .wait: break
    case .frame(let frame, let writer):
      continuation.resume(returning: .success(frame))
      writer?.resume(returning: nil)
    case .end(let error): continuation.resume(returning: .failure(error))
    }
  }

  private func offer(_ frame: InboundFrame, _ continuation: Writer) {
    enum Step {
      case wait
      case taken(Reader?)
      case end(TransportError)
    }
    let step = state.withLock { state -> Step in
      if let end = state.end { return .end(end) }
      if let reader = state.reader {
        state.reader = nil
        return .taken(reader)
      }
      guard state.frames.count < framesMax else {
        state.writers.append((frame, continuation))
        return .wait
      }
      state.frames.append(frame)
      return .taken(nil)
    }
    switch step {
    case .wait: break
    case .taken(let reader):
      reader?.resume(returning: .success(frame))
      continuation.resume(returning: nil)
    case .end(let error): continuation.resume(returning: error)
    }
  }

  private func interruptReader() {
    let reader = state.withLock { state -> Reader? in
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume(returning: .failure(.cancelled))
  }
}

/// One end of a connection in memory.
final class MemoryLink: TransportLink {
  private let inbound: MemoryPipe
  private let outbound: MemoryPipe
  private let frameBytesMaxOfPeer: Int

  init(inbound: MemoryPipe, outbound: MemoryPipe, frameBytesMaxOfPeer: Int) {
    self.inbound = inbound
    self.outbound = outbound
    self.frameBytesMaxOfPeer = frameBytesMaxOfPeer
  }

  func receive() async throws(TransportError) -> InboundFrame { try await inbound.receive() }

  func send(_ text: [UInt8]) async throws(TransportError) {
    let isTooLarge = text.count > frameBytesMaxOfPeer
    try await outbound.send(isTooLarge ? .tooLarge(limit: frameBytesMaxOfPeer) : .message(text))
  }

  func ping() async throws(TransportError) { try await inbound.send(.pong) }

  func close(code: UInt16) {
    outbound.finish(.closed(code: code, reason: ""), losesFrames: false)
    inbound.finish(.closed(code: code, reason: ""), losesFrames: false)
  }

  func abandon() {
    outbound.finish(.closed(code: 1006, reason: ""), losesFrames: true)
    inbound.finish(.closed(code: 1006, reason: ""), losesFrames: true)
  }
}
