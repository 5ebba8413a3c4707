package import Nostr
package import SyncCore

/// Runs one relay machine over a listener: it feeds the machine frames and time, and performs the
/// effects. Every rule is the machine's.
package actor RelayHost {
  /// What one host takes on.
  package struct Limits: Sendable {
    package var connectionsMax = 1024
    /// A connection with more than this waiting for its reader is dropped.
    package var queueBytesMax = 64 << 20
    /// Above this no further frame of a connection is read until its answers have left.
    package var queueBytesHigh = 1 << 20

    package init() {}
  }

  /// Why a host ended by itself.
  package enum Failure: Error, Sendable, Hashable {
    /// An event that was accepted could not be written down.
    case journal(JournalError)
  }

  private let ports: Ports
  private let executor: any SerialExecutor
  private let journal: EventJournal?
  private let limits: Limits
  private var machine: RelayMachine
  private var clients: [ConnectionID: Client] = [:]
  private var connectionNext: UInt64 = 1
  private var bound: (any BoundListener)?
  private var acceptor: (any SpawnedTask)?
  private var alarm: (due: Duration, task: any SpawnedTask)?
  package private(set) var failure: Failure?

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// One connection's outgoing queue.
  private struct Client {
    let link: any TransportLink
    var queue: [[UInt8]] = []
    var queuedBytes = 0
    /// Set once the connection is to end after its queue.
    var closingCode: UInt16?
    var writer: CheckedContinuation<[[UInt8]]?, Never>?
    var reader: CheckedContinuation<Void, Never>?
  }

  /// - Parameters:
  ///   - executor: Where the host runs; one with a thread of its own where the store or the
  ///     journal blocks.
  ///   - journal: Where accepted events are written down before they are answered.
  package init(
    _ machine: RelayMachine, ports: Ports, executor: any SerialExecutor,
    journal: EventJournal? = nil, limits: Limits = Limits()
  ) {
    self.machine = machine
    self.ports = ports
    self.executor = executor
    self.journal = journal
    self.limits = limits
  }

  /// Listens and serves until `stop`.
  ///
  /// - Returns: The port that is listened on.
  @discardableResult
  package func start(
    on listener: any TransportListener, host: String, port: UInt16
  ) async throws(TransportError) -> UInt16 {
    precondition(bound == nil, "a host listens once")
    let bound = try await listener.listen(
      host: host, port: port, frameBytesMax: machine.rules.limits.frameBytesMax)
    self.bound = bound
    machine.nameAddress(host: host, port: bound.port)
    bound.setRelayInformation(machine.document)
    bound.setAnswerer { [weak self] question in await self?.answer(question) }
    acceptor = ports.tasks.spawn("relay acceptor") { [weak self] in
      // The listener throws when it is closed, which is the end of the loop.
      while let link = try? await bound.accept() {
        guard let self else { return link.close(code: 1001) }
        await self.admit(link)
      }
    }
    return bound.port
  }

  /// Ends every connection and stops listening.
  package func stop() async {
    bound?.close()
    acceptor?.cancel()
    alarm?.task.cancel()
    for id in clients.keys.sorted() { finish(id, code: 1001) }
    await acceptor?.finished()
    acceptor = nil
    alarm = nil
  }

  /// Changes the machine between two inputs: its rules in a test, its groups in a replica.
  ///
  /// - Parameter change: Returns effects to perform, such as those of `closeSubscriptions`.
  package func update(
    _ change: @Sendable (inout RelayMachine, Timestamp, Duration) -> [RelayMachine.Effect]
  ) {
    let effects = change(&machine, ports.clock.now(), ports.clock.uptime())
    bound?.setRelayInformation(machine.document)
    perform(effects)
  }

  /// Tells whoever listens of events that came into the store by another way.
  package func announce(_ events: [Event]) { step(.arrived(events)) }

  /// Answers a question about the machine between two inputs.
  package func ask<Answer: Sendable>(_ question: @Sendable (RelayMachine) -> Answer) -> Answer {
    question(machine)
  }

  /// Answers what was POSTed.
  private func answer(_ question: ServedQuestion) -> RelayReply? {
    machine.answer(question, now: ports.clock.now())
  }

  // MARK: Connections

  private func admit(_ link: any TransportLink) {
    guard clients.count < limits.connectionsMax, failure == nil else {
      return link.close(code: 1013)
    }
    let id = ConnectionID(connectionNext)
    connectionNext += 1
    clients[id] = Client(link: link)
    step(.opened(id, challenge: challenge()))
    _ = ports.tasks.spawn("relay reader") { [weak self] in
      while let frame = try? await link.receive() {
        guard let self else { break }
        await self.receive(frame, from: id)
      }
      await self?.end(id)
    }
    _ = ports.tasks.spawn("relay writer") { [weak self] in
      while let frames = await self?.nextFrames(of: id) {
        guard (try? await link.send(frames)) != nil else { return link.abandon() }
      }
    }
  }

  private func challenge() -> Text {
    let words = (0..<4).map { _ in String(ports.random.next(), radix: 16) }
    return Text(words.map { String(repeating: "0", count: 16 - $0.count) + $0 }.joined())
  }

  private func receive(_ frame: InboundFrame, from id: ConnectionID) async {
    // Whoever does not read its answers is not listened to either.
    if let client = clients[id], client.queuedBytes > limits.queueBytesHigh {
      await withCheckedContinuation { clients[id]?.reader = $0 }
    }
    switch frame {
    case .message(let bytes): step(.frame(id, bytes))
    case .tooLarge: step(.tooLarge(id))
    case .pong: break
    }
  }

  /// The connection has ended on the other side.
  private func end(_ id: ConnectionID) {
    guard clients[id] != nil else { return }
    finish(id, code: 1000)
    step(.closed(id))
  }

  /// Lets the writer flush what is queued and then close.
  private func finish(_ id: ConnectionID, code: UInt16) {
    guard clients[id] != nil else { return }
    clients[id]?.closingCode = code
    let reader = clients[id]?.reader
    clients[id]?.reader = nil
    reader?.resume()
    wakeWriter(of: id)
  }

  private func nextFrames(of id: ConnectionID) async -> [[UInt8]]? {
    if let ready = takeFrames(of: id) { return ready }
    guard clients[id] != nil else { return nil }
    return await withCheckedContinuation { clients[id]?.writer = $0 }
  }

  /// What the writer is to send now; nil where there is nothing, or the connection is over.
  private func takeFrames(of id: ConnectionID) -> [[UInt8]]? {
    guard let client = clients[id] else { return nil }
    if client.queue.isEmpty {
      guard let code = client.closingCode else { return nil }
      clients[id] = nil
      client.link.close(code: code)
      return nil
    }
    clients[id]?.queue = []
    clients[id]?.queuedBytes = 0
    let reader = clients[id]?.reader
    clients[id]?.reader = nil
    reader?.resume()
    return client.queue
  }

  private func wakeWriter(of id: ConnectionID) {
    guard let writer = clients[id]?.writer else { return }
    clients[id]?.writer = nil
    writer.resume(returning: takeFrames(of: id))
  }

  private func queue(_ frame: [UInt8], for id: ConnectionID) {
    guard let client = clients[id], client.closingCode == nil else { return }
    guard client.queuedBytes + frame.count <= limits.queueBytesMax else {
      client.link.abandon()
      return end(id)
    }
    clients[id]?.queue.append(frame)
    clients[id]?.queuedBytes += frame.count
  }

  // MARK: Steps

  private func step(_ input: RelayMachine.Input) {
    perform(machine.handle(input, now: ports.clock.now(), uptime: ports.clock.uptime()))
  }

  private func perform(_ effects: [RelayMachine.Effect]) {
    var touched: Set<ConnectionID> = []
    for effect in effects {
      switch effect {
      case .send(let id, let frame):
        queue(frame, for: id)
        touched.insert(id)
      case .close(let id, let code): finish(id, code: code)
      case .keep(let event):
        do throws(JournalError) {
          try journal?.append(event)
        } catch {
          // Nothing may be answered that is not written down: the relay ends here.
          return fail(.journal(error))
        }
      }
    }
    for id in touched.sorted() { wakeWriter(of: id) }
    armAlarm()
  }

  private func fail(_ failure: Failure) {
    self.failure = failure
    bound?.close()
    for id in clients.keys.sorted() {
      clients[id]?.queue = []
      finish(id, code: 1011)
    }
  }

  private func armAlarm() {
    let due = machine.nextDeadline
    if alarm?.due == due { return }
    alarm?.task.cancel()
    alarm = nil
    guard let due else { return }
    let clock = ports.clock
    let task = ports.tasks.spawn("relay alarm") { [weak self] in
      // A cancelled alarm was replaced by a better one.
      guard (try? await clock.sleep(until: due)) != nil else { return }
      await self?.ring()
    }
    alarm = (due, task)
  }

  private func ring() {
    alarm = nil
    step(.tick)
  }
}
