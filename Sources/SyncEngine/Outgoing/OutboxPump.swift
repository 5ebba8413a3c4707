import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// Moves the outbox of one relay: it feeds an `OutboxPolicy` and performs what that decides, one
/// input after the other, so that a row always says what was decided last.
actor OutboxPump {
  private let connection: RelayConnection
  private let store: CommunityStore
  private let desk: LogDesk
  private let ports: Ports
  private let redater: Redater?
  private let onChange: @Sendable () async -> Void
  private(set) var policy: OutboxPolicy
  private(set) var failure: LogError?
  private var inputs: [OutboxPolicy.Input] = []
  private var isRunning = false
  private var alarm = Alarm()
  /// Messages that this process has brought to their end.
  private(set) var sent = 0
  private(set) var failed = 0

  init(
    connection: RelayConnection, store: CommunityStore, desk: LogDesk, ports: Ports,
    redater: Redater?, limits: Limits, isRedating: Bool,
    onChange: @escaping @Sendable () async -> Void
  ) {
    self.connection = connection
    self.store = store
    self.desk = desk
    self.ports = ports
    self.redater = redater
    self.onChange = onChange
    policy = OutboxPolicy(limits: limits, isRedating: isRedating && redater != nil)
  }

  /// Takes over what the log still holds.
  func load() async throws(LogError) {
    for item in try await desk.items(for: connection.url) { await take(.added(item)) }
  }

  func added(_ message: Message, _ event: Event) async {
    for delivery in message.deliveries where delivery.relay == connection.url {
      await take(.added(OutboxPolicy.Item(delivery: delivery, createdAt: event.createdAt)))
    }
  }

  func stop() {
    alarm.cancel()
    inputs = []
  }

  /// Whether nothing is left to do now, and all of what was done is on the disk.
  var isAtRest: Bool { policy.isAtRest && !isRunning && inputs.isEmpty }

  func take(_ input: OutboxPolicy.Input) async {
    // What cannot be recorded is not decided either.
    guard failure == nil else { return }
    inputs.append(input)
    await run()
  }

  private func run() async {
    guard !isRunning else { return }
    isRunning = true
    while !inputs.isEmpty, failure == nil {
      let input = inputs.removeFirst()
      let effects = policy.handle(
        input, at: ports.clock.uptime(), wall: ports.clock.now(), using: ports.random)
      for effect in effects { await perform(effect) }
    }
    isRunning = false
    if failure != nil { inputs = [] }
    // After a failure nothing waits any more: a time that has passed would ring again and again.
    let deadline = failure == nil ? policy.deadline : nil
    alarm.set(deadline, "outbox alarm", ports) { [weak self] in await self?.tick() }
    await onChange()
  }

  /// Tries a message again; one that names another by an id that this has no more goes signed anew.
  func retry(_ id: MessageID) async {
    do throws(LogError) {
      await take(.retry(id, isOutdated: try await desk.isOutdated(id)))
    } catch {
      failure = error
      await onChange()
    }
  }

  /// Forgets a message that was never handed over, before anything else is decided.
  ///
  /// - Returns: False: it was, or is being changed.
  func takeBack(_ id: MessageID) async -> Bool {
    guard policy.isUnhanded(id) else { return false }
    inputs.insert(.discarded(id), at: 0)
    await run()
    return true
  }

  private func tick() async {
    alarm.rang()
    await take(.tick)
  }

  private func perform(_ effect: OutboxPolicy.Effect) async {
    guard failure == nil else { return }
    do throws(LogError) {
      switch effect {
      case .record(let delivery):
        try await store.record(DeliveryChange(delivery))
        if delivery.state == .sent { sent += 1 }
        if delivery.state == .refused || delivery.state == .expired { failed += 1 }
      case .publish(_, let id):
        guard let event = try await desk.event(id) else {
          inputs.append(.unanswered(id, isHanded: false, "the event is missing in the log"))
          return
        }
        await connection.publish(event)
      case .look(let id): await look(id)
      case .redate(let id): await redate(id)
      case .refresh(let id):
        try await store.log.setSetting(TimelineReferences.key(connection.url), [1])
        await redate(id)
      }
    } catch {
      failure = error
    }
  }

  /// Asks the relay for an event by its id, beside what goes on here.
  private func look(_ id: EventID) async {
    let kind: EventKind?
    do throws(LogError) {
      kind = try await desk.event(id)?.kind
    } catch {
      failure = error
      return
    }
    let filter = Filter(ids: [id], kinds: kind.map { [$0] }, limit: 1)
    let connection = connection
    _ = ports.tasks.spawn("outbox look") { [weak self] in
      let page = await connection.fetch(HistoryWalk.Request(filter: filter))
      let isThere: Bool? =
        switch page.end {
        case .complete: page.events.contains { $0.event.id == id }
        case .refused, .noticed, .timedOut, .disconnected, .cancelled:
          page.events.contains { $0.event.id == id } ? true : nil
        }
      await self?.take(.looked(id, isThere: isThere))
    }
  }

  private func redate(_ id: MessageID) async {
    guard let redater else {
      return inputs.append(.redatingFailed(id, "there is no key to sign it anew"))
    }
    do throws(RedatingError) {
      for (message, event) in try await redater.redate(id, relay: connection.url) {
        for delivery in message.deliveries where delivery.relay == connection.url {
          inputs.append(.redated(OutboxPolicy.Item(delivery: delivery, createdAt: event.createdAt)))
        }
      }
    } catch .log(let error) {
      failure = error
    } catch .early {
      inputs.append(.redatingDelayed(id, RedatingError.early.description))
    } catch {
      inputs.append(.redatingFailed(id, error.description))
    }
  }
}
