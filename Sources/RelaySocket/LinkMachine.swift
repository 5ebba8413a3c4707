import SyncCore

/// What one connection owes to its callers and to the service thread.
///
/// Decides who is resumed with what, when the socket must not be read, and what is written next.
/// It owns no socket and takes no lock: `LinkCore` performs what it answers. Invariants: each
/// continuation leaves exactly once, through `Wakeups`; frames that arrived before the end are
/// handed out before the end is told; after the end nothing is queued.
struct LinkMachine {
  typealias Receiver = CheckedContinuation<Result<InboundFrame, TransportError>, Never>
  typealias Sender = CheckedContinuation<Result<Void, TransportError>, Never>

  enum Phase {
    case opening
    case open
    case closing(code: UInt16)
    case ended(TransportError)
  }

  enum Payload {
    case text(WriteBuffer)
    case ping
  }

  struct Outgoing {
    let ticket: UInt64
    let payload: Payload
    let sender: Sender
  }

  /// Continuations to resume once the lock is released.
  struct Wakeups {
    var opener: (Sender, Result<Void, TransportError>)?
    var receiver: (Receiver, Result<InboundFrame, TransportError>)?
    var senders: [(Sender, Result<Void, TransportError>)] = []
    /// Whether the service thread must look at this connection.
    var needsService = false

    func resume() {
      if let (continuation, result) = opener { continuation.resume(returning: result) }
      if let (continuation, result) = receiver { continuation.resume(returning: result) }
      for (continuation, result) in senders { continuation.resume(returning: result) }
    }
  }

  /// What the service thread is asked to do.
  struct Wants {
    var kill = false
    var resumeReading = false
    var write = false
  }

  enum Writing {
    case nothing
    case frame(Payload)
    case close(code: UInt16)
  }

  private let limits: SocketLimits
  private(set) var phase: Phase
  private var opener: Sender?
  private var receiver: (ticket: UInt64, continuation: Receiver)?
  private var inbound = Fifo<InboundFrame>()
  private var inboundBytes = 0
  private var isPaused = false
  private var outgoing = Fifo<Outgoing>()
  private var inFlight: Outgoing?
  private var ticketLast: UInt64 = 0
  private var wantsKill = false
  private var wantsResume = false
  private var isFlagged = false

  init(phase: Phase, limits: SocketLimits) {
    self.phase = phase
    self.limits = limits
  }

  var isEnded: Bool { if case .ended = phase { true } else { false } }
  var hasFrameInFlight: Bool { inFlight != nil }

  mutating func ticket() -> UInt64 {
    ticketLast += 1
    return ticketLast
  }

  // MARK: Callers

  mutating func awaitOpen(_ continuation: Sender, isCancelled: Bool) -> Wakeups {
    var wakeups = Wakeups()
    switch phase {
    case .ended(let error): wakeups.opener = (continuation, .failure(error))
    case .open, .closing: wakeups.opener = (continuation, .success(()))
    case .opening:
      opener = continuation
      if isCancelled { return end(with: .cancelled, isAbandoned: true) }
    }
    return wakeups
  }

  mutating func receive(_ continuation: Receiver, ticket: UInt64, isCancelled: Bool) -> Wakeups {
    var wakeups = Wakeups()
    if isCancelled {
      wakeups.receiver = (continuation, .failure(.cancelled))
    } else if let frame = inbound.popFirst() {
      wakeups.receiver = (continuation, .success(frame))
      inboundBytes -= frame.cost
      // Half empty rather than one free place: turning the socket on and off per message costs a
      // wake-up of the service thread each time.
      if isPaused, inbound.count <= limits.inboundFramesMax / 2,
        inboundBytes <= limits.inboundBytesMax / 2
      {
        isPaused = false
        wantsResume = true
        wakeups.needsService = flag()
      }
    } else if case .ended(let error) = phase {
      wakeups.receiver = (continuation, .failure(error))
    } else {
      precondition(receiver == nil, "two callers wait to receive from one connection")
      receiver = (ticket, continuation)
    }
    return wakeups
  }

  mutating func cancelReceive(ticket: UInt64) -> Wakeups {
    var wakeups = Wakeups()
    if let waiting = receiver, waiting.ticket == ticket {
      receiver = nil
      wakeups.receiver = (waiting.continuation, .failure(.cancelled))
    }
    return wakeups
  }

  mutating func send(_ frame: Outgoing, isCancelled: Bool) -> Wakeups {
    var wakeups = Wakeups()
    if isCancelled {
      wakeups.senders = [(frame.sender, .failure(.cancelled))]
      return wakeups
    }
    switch phase {
    case .ended(let error):
      wakeups.senders = [(frame.sender, .failure(error))]
    case .closing(let code):
      wakeups.senders = [(frame.sender, .failure(.closed(code: code, reason: "closing")))]
    case .opening, .open:
      if outgoing.count >= limits.sendsWaitingMax {
        let reason = "\(limits.sendsWaitingMax) frames already wait to be sent"
        wakeups.senders = [(frame.sender, .failure(.refused(reason)))]
      } else {
        outgoing.append(frame)
        wakeups.needsService = flag()
      }
    }
    return wakeups
  }

  mutating func cancelSend(ticket: UInt64) -> Wakeups {
    var wakeups = Wakeups()
    if let frame = inFlight, frame.ticket == ticket {
      // The bytes are the library's already and may arrive; only the wait ends.
      inFlight = nil
      wakeups.senders = [(frame.sender, .failure(.cancelled))]
    } else if let frame = outgoing.removeFirst(where: { $0.ticket == ticket }) {
      wakeups.senders = [(frame.sender, .failure(.cancelled))]
    }
    return wakeups
  }

  mutating func close(code: UInt16) -> Wakeups {
    switch phase {
    case .opening: return end(with: .closed(code: code, reason: ""), isAbandoned: true)
    case .closing, .ended: return Wakeups()
    case .open:
      phase = .closing(code: code)
      var wakeups = Wakeups()
      let error = TransportError.closed(code: code, reason: "closing")
      wakeups.senders = outgoing.removeAll().map { ($0.sender, .failure(error)) }
      wakeups.needsService = flag()
      return wakeups
    }
  }

  mutating func abandon() -> Wakeups {
    _ = inbound.removeAll()
    inboundBytes = 0
    return end(with: .closed(code: 1006, reason: "abandoned"), isAbandoned: true)
  }

  /// Nobody holds the connection any more. A close handshake that was begun may end by itself.
  mutating func letGo() -> Wakeups {
    if case .closing = phase { return Wakeups() }
    return abandon()
  }

  // MARK: The service thread

  mutating func takeWants() -> Wants {
    isFlagged = false
    let wants = Wants(
      kill: wantsKill, resumeReading: wantsResume && !isEnded, write: hasSomethingToWrite)
    wantsResume = false
    return wants
  }

  mutating func opened() -> Wakeups {
    var wakeups = Wakeups()
    guard case .opening = phase else { return wakeups }
    phase = .open
    if let opener { wakeups.opener = (opener, .success(())) }
    opener = nil
    return wakeups
  }

  /// Takes a frame from the socket, and says whether the socket must not be read further.
  mutating func arrived(_ frame: InboundFrame) -> (wakeups: Wakeups, pause: Bool) {
    var wakeups = Wakeups()
    guard !isEnded else { return (wakeups, false) }
    if let waiting = receiver {
      receiver = nil
      wakeups.receiver = (waiting.continuation, .success(frame))
      return (wakeups, false)
    }
    inbound.append(frame)
    inboundBytes += frame.cost
    let isFull =
      inbound.count >= limits.inboundFramesMax || inboundBytes >= limits.inboundBytesMax
    guard isFull, !isPaused else { return (wakeups, false) }
    isPaused = true
    return (wakeups, true)
  }

  /// The socket takes bytes again: what was in flight has left, and this is what is next.
  mutating func writable() -> (wakeups: Wakeups, next: Writing) {
    var wakeups = Wakeups()
    if let sent = inFlight {
      inFlight = nil
      wakeups.senders = [(sent.sender, .success(()))]
    }
    switch phase {
    case .opening, .ended: return (wakeups, .nothing)
    case .closing(let code): return (wakeups, .close(code: code))
    case .open:
      guard let frame = outgoing.popFirst() else { return (wakeups, .nothing) }
      inFlight = frame
      return (wakeups, .frame(frame.payload))
    }
  }

  /// The end, for whatever reason. The first reason stays.
  mutating func end(with error: TransportError, isAbandoned: Bool = false) -> Wakeups {
    var wakeups = Wakeups()
    if isAbandoned {
      wantsKill = true
      wakeups.needsService = flag()
    }
    if isEnded { return wakeups }
    phase = .ended(error)
    if let opener { wakeups.opener = (opener, .failure(error)) }
    opener = nil
    if let waiting = receiver { wakeups.receiver = (waiting.continuation, .failure(error)) }
    receiver = nil
    let unsent = [inFlight].compactMap { $0 } + outgoing.removeAll()
    inFlight = nil
    wakeups.senders = unsent.map { ($0.sender, .failure(error)) }
    return wakeups
  }

  private var hasSomethingToWrite: Bool {
    switch phase {
    case .open: !outgoing.isEmpty
    case .closing: true
    case .opening, .ended: false
    }
  }

  /// True the first time since the service thread last looked.
  private mutating func flag() -> Bool {
    defer { isFlagged = true }
    return !isFlagged
  }
}

extension InboundFrame {
  /// What a queued frame counts against the byte limit.
  fileprivate var cost: Int {
    switch self {
    case .message(let bytes): bytes.count + 64
    case .pong, .tooLarge: 64
    }
  }
}
