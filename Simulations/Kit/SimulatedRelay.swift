package import Nostr
import NostrCrypto
package import RelayServer
import SyncCore

/// A relay machine in a world: it is fed by links and the world's clock.
package final class SimulatedRelay {
  package let name: String
  package private(set) var machine: RelayMachine
  /// At which step of the world each event was accepted first.
  package private(set) var acceptedAt: [EventID: Int] = [:]
  package private(set) var accepted: [Event] = []
  private var acceptedEvents: [EventID: Event] = [:]
  package private(set) var acceptedTimes: [EventID: Duration] = [:]
  /// Is told of every event that is stored.
  package var onAccepted: ((Event) -> Void)?
  package private(set) var isUp = true
  package let url: RelayURL
  /// By how many seconds the relay's clock is ahead of the world's.
  package var clockOffset: Int64 = 0
  private let world: World
  private var links: [ConnectionID: SimulatedLink] = [:]
  private var connectionNext: UInt64 = 1
  private var challenges: SplitMix64
  private var alarmDue: Duration?

  /// - Parameter origin: The relay of which this one is a replica; it signs nothing itself.
  package init(
    _ name: String, in world: World, rules: RelayRules, copying origin: SimulatedRelay? = nil
  ) {
    self.name = name
    self.world = world
    challenges = world.generator("challenges of \(name)")
    let verdicts = world.verdicts
    let key = SimulationKeys.key("relay \(name)")
    guard let url = RelayURL("ws://\(name)") else {
      preconditionFailure("a relay's name is a host")
    }
    self.url = url
    let identity = RelayIdentity(
      name: Text(name), urls: [url],
      signer: origin == nil ? RelaySigner(key, entropy: NoEntropy()) : nil,
      selfKey: origin?.machine.identity.selfKey)
    machine = RelayMachine(identity: identity, rules: rules) { verdicts.isValid($0) }
  }

  package var document: [UInt8] { machine.document }

  /// Puts events in as if they had always been there.
  package func load(_ events: [Event]) {
    do throws(RelayStoreError) {
      try machine.load(events)
    } catch {
      world.fail(.safety, "a store in memory takes what it is given: \(error)")
    }
    for event in events { record(event, at: .seconds(-86_400)) }
  }

  /// What a relay that keeps its word would serve now for a filter.
  package func served(_ filter: Filter, to keys: [PublicKey] = []) -> [Event] {
    let page = try? machine.store.page(PageRequest(filter: filter, eventsMax: .max))
    return page?.events ?? []
  }

  /// Whether this relay ever had the event.
  package func hasSaid(_ id: EventID) -> Bool { acceptedAt[id] != nil }

  /// Whether it ever had just these bytes.
  func hasSaid(_ event: Event) -> Bool { acceptedEvents[event.id] == event }

  /// Takes an event that came another way, such as from a client outside this world.
  package func receive(_ event: Event) {
    perform(machine.admit(event, now: wall, uptime: world.now))
  }

  /// The relay's own clock.
  package var wall: Timestamp { world.wall + clockOffset }

  package func setRules(_ change: (inout RelayRules) -> Void) { change(&machine.rules) }

  // MARK: Links

  func connect(_ link: SimulatedLink) -> ConnectionID {
    let id = ConnectionID(connectionNext)
    connectionNext += 1
    links[id] = link
    step(.opened(id, challenge: Text(String(challenges.next(), radix: 16))))
    return id
  }

  func receive(_ frame: [UInt8], from id: ConnectionID) { step(.frame(id, frame)) }

  func disconnected(_ id: ConnectionID) {
    guard links.removeValue(forKey: id) != nil else { return }
    step(.closed(id))
  }

  /// Goes down, with every connection lost.
  ///
  /// - Parameter isKept: What of the stored events is still there when it comes back.
  package func stop(keeping isKept: (Event) -> Bool = { _ in true }) {
    isUp = false
    world.note("\(name) stops")
    for id in links.keys.sorted() { links[id]?.cut(isSilent: false) }
    links = [:]
    do throws(RelayStoreError) {
      try machine.restart(keeping: isKept)
    } catch {
      world.fail(.safety, "a store in memory survives a restart: \(error)")
    }
  }

  package func start() {
    isUp = true
    world.note("\(name) starts")
  }

  private func step(_ input: RelayMachine.Input) {
    perform(machine.handle(input, now: wall, uptime: world.now))
  }

  private func perform(_ effects: [RelayMachine.Effect]) {
    for effect in effects {
      switch effect {
      case .send(let id, let frame): links[id]?.sendDown(frame)
      case .close(let id, _): links.removeValue(forKey: id)?.closeFromRelay()
      case .keep(let event): record(event)
      }
    }
    armAlarm()
  }

  private func record(_ event: Event, at time: Duration? = nil) {
    onAccepted?(event)
    guard acceptedAt[event.id] == nil else { return }
    acceptedAt[event.id] = world.steps
    acceptedTimes[event.id] = time ?? world.now
    accepted.append(event)
    acceptedEvents[event.id] = event
  }

  private func armAlarm() {
    guard let due = machine.nextDeadline, alarmDue.map({ due < $0 }) ?? true else { return }
    alarmDue = due
    world.after(due - world.now) { [weak self] in
      guard let self, self.alarmDue == due else { return }
      self.alarmDue = nil
      self.step(.tick)
    }
  }
}
