import SyncCore

/// What one connection owes to its callers and to the service thread.
///
/// Decides who is resumed with what, when the socket must not be read, and what is written next.
/// It owns no socket and takes no lock: `LinkCore` performs what it answers. Invariants: each
/// continuation leaves exactly once, through `Wakeups`; frames that arrived before the end are
/// handed out before the end is told; after the end nothing is queued.
struct LinkMachine {
  typealias Receiver = CheckedContinuation<Result<[InboundFrame], TransportError>, Never>
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
    /// Stands behind the last of the frames that were given together.
    let sender: Sender?
  }

  struct Waiting {
    let ticket: UInt64
    let countMax: Int
    let continuation: Receiver
  }

  /// Continuations to resume once the lock is released.
  struct Wakeups {
    var opener: (Sender, Result<Void, TransportError>)?
    var receiver: (Receiver, Result<[InboundFrame], TransportError>)?
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
  private var receiver: Waiting?
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

  mutating func receive(_ wait: Waiting, isCancelled: Bool) -> Wakeups {
    var wakeups = Wakeups()
    if isCancelled {
      wakeups.receiver = (wait.continuation, .failure(.cancelled))
    } else if !inbound.isEmpty {
      handOut(to: wait, &wakeups)
    } else if case .ended(let error) = phase {
      wakeups.receiver = (wait.continuation, .failure(error))
    } else {
      precondition(receiver == nil, "two callers wait to receive from one connection")
      receiver = wait
    }
    return wakeups
  }

  private mutating func handOut(to wait: Waiting, _ wakeups: inout Wakeups) {
    var frames: [InboundFrame] = []
    while frames.count < wait.countMax, let frame = inbound.popFirst() {
      inboundBytes -= frame.cost
      frames.append(frame)
    }
    wakeups.receiver = (wait.continuation, .success(frames))
    // Half empty rather than one free place: turning the socket on and off per message costs a
    // wake-up of the service thread each time.
    if isPaused, inbound.count <= limits.inboundFramesMax / 2,
      inboundBytes <= limits.inboundBytesMax / 2
    {
      isPaused = false
      wantsResume = true
      wakeups.needsService = flag()
    }
  }

  mutating func cancelReceive(ticket: UInt64) -> Wakeups {
    var wakeups = Wakeups()
    if let waiting = receiver, waiting.ticket == ticket {
      receiver = nil
      wakeups.receiver = (waiting.continuation, .failure(.cancelled))
    }
    return wakeups
  }

  /// Queues frames that leave one after the other; `sender` hears when the last of them has left.
  mutating func send(
    _ payloads: [Payload], ticket: UInt64, _ sender: Sender, isCancelled: Bool
  ) -> Wakeups {
    var wakeups = Wakeups()
    if isCancelled {
      wakeups.senders = [(sender, .failure(.cancelled))]
      return wakeups
    }
    switch phase {
    case .ended(let error):
      wakeups.senders = [(sender, .failure(error))]
    case .closing(let code):
      wakeups.senders = [(sender, .failure(.closed(code: code, reason: "closing")))]
    case .opening, .open:
      if outgoing.count + payloads.count > limits.sendsWaitingMax {
        let reason = "\(limits.sendsWaitingMax) frames already wait to be sent"
        wakeups.senders = [(sender, .failure(.refused(reason)))]
      } else {
        for (index, payload) in payloads.enumerated() {
          let isLast = index == payloads.count - 1
          outgoing.append(
            Outgoing(ticket: ticket, payload: payload, sender: isLast ? sender : nil))
        }
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
      if let sender = frame.sender { wakeups.senders = [(sender, .failure(.cancelled))] }
    }
    while let frame = outgoing.removeFirst(where: { $0.ticket == ticket }) {
      if let sender = frame.sender { wakeups.senders = [(sender, .failure(.cancelled))] }
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
      wakeups.senders = outgoing.removeAll().compactMap { frame in
        frame.sender.map { ($0, .failure(error)) }
      }
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

  /// Takes a frame from the socket, and says whether somebody waits for it, and whether the socket
  /// must not be read further.
  mutating func arrived(_ frame: InboundFrame) -> (isAwaited: Bool, pause: Bool) {
    guard !isEnded else { return (false, false) }
    inbound.append(frame)
    inboundBytes += frame.cost
    let isFull =
      inbound.count >= limits.inboundFramesMax || inboundBytes >= limits.inboundBytesMax
    guard isFull, !isPaused else { return (receiver != nil, false) }
    isPaused = true
    return (receiver != nil, true)
  }

  /// Hands out what has arrived to whoever waits.
  mutating func deliver() -> Wakeups {
    var wakeups = Wakeups()
    guard let waiting = receiver, !inbound.isEmpty else { return wakeups }
    receiver = nil
    handOut(to: waiting, &wakeups)
    return wakeups
  }

  /// The socket takes bytes again: what was in flight has left, and this is what is next.
  mutating func writable() -> (wakeups: Wakeups, next: Writing) {
    var wakeups = Wakeups()
    if let sent = inFlight {
      inFlight = nil
      if let sender = sent.sender { wakeups.senders = [(sender, .success(()))] }
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
    if let waiting = receiver {
      receiver = nil
      // What has arrived is handed out first, and the end told to the next call.
      if inbound.isEmpty {
        wakeups.receiver = (waiting.continuation, .failure(error))
      } else {
        handOut(to: waiting, &wakeups)
      }
    }
    let unsent = [inFlight].compactMap { $0 } + outgoing.removeAll()
    inFlight = nil
    wakeups.senders = unsent.compactMap { frame in frame.sender.map { ($0, .failure(error)) } }
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
