public import Nostr

/// What is done about the messages that one relay has yet to accept, and when.
///
/// It owns the state of each delivery from load to end, and the order. It does not sign, send or
/// store: it says what to record, what to hand over, what to ask the relay for, and what to re-date.
///
/// Invariants:
/// * What is handed over was recorded as handed over first.
/// * In one group, messages go in the order in which they were written, one at a time; one that is
///   refused steps aside and holds up nobody but those that answer it.
/// * A message whose fate is unknown is looked for at the relay before it is sent again, and what is
///   sent again are the same bytes.
/// * Nothing but the relay's acceptance, or the event seen at the relay, makes a message `sent`.
public struct OutboxPolicy: Sendable {
  /// One message on its way to this relay.
  public struct Item: Hashable, Sendable {
    public var delivery: Delivery
    public let createdAt: Timestamp
    /// Whether it names a message of ours by an id that this has no more.
    public var isOutdated: Bool

    public init(delivery: Delivery, createdAt: Timestamp, isOutdated: Bool = false) {
      self.delivery = delivery
      self.createdAt = createdAt
      self.isOutdated = isOutdated
    }
  }

  public enum Input: Sendable {
    /// A message from the log, at the start or just written.
    case added(Item)
    case connected
    case disconnected
    /// How old an event the relay takes, in seconds; nil where it named no limit.
    case dateWindow(Int64?)
    case verdict(EventID, accepted: Bool, Text)
    case unanswered(EventID, isHanded: Bool, Text)
    /// The relay sent the event itself.
    case echoed(EventID)
    /// Whether the relay has the event; nil: it did not say.
    case looked(EventID, isThere: Bool?)
    /// The message has a new event.
    case redated(Item)
    case redatingFailed(MessageID, Text)
    /// It cannot get its new date yet.
    case redatingDelayed(MessageID, Text)
    /// The user wants it tried again, whatever the relay said; whether it names a message of ours by
    /// an id that this has no more.
    case retry(MessageID, isOutdated: Bool)
    case discarded(MessageID)
    case tick
  }

  public enum Effect: Hashable, Sendable {
    /// To be on the disk before the effects after it.
    case record(Delivery)
    case publish(MessageID, EventID)
    /// Ask the relay for the event by its id.
    case look(EventID)
    /// Give the message, and those that wait for it, a new date.
    case redate(MessageID)
    /// The same for one that the relay took for out of context: the new event, and what is written
    /// from now on, names events that the relay has.
    case refresh(MessageID)
  }

  /// Whether a message may get a new date where its own is outside the relay's window.
  public let isRedating: Bool
  public let limits: Limits
  public internal(set) var isConnected = false
  var dateWindow: Int64?
  var entries: [MessageID: Entry] = [:]
  /// The order in which the messages were written.
  var order: [MessageID] = []
  var byEvent: [EventID: MessageID] = [:]
  var effects: [Effect] = []

  struct Entry: Sendable {
    enum Activity: Hashable, Sendable {
      case idle
      case publishing
      case looking
      case redating
    }

    var item: Item
    var activity = Activity.idle
    var notBefore: Duration?
    /// Whether a wait holds over a reconnection, because the relay asked for it.
    var isWaitAsked = false
    var errors = 0
    var unknowns = 0
    var wasRefusedForTime = false
    var wasRefusedForReferences = false
    /// New events that it got because of that.
    var refreshes = 0
    /// Whether the relay said that it does not have it, since it was last handed over.
    var isKnownAbsent = false
    var ignoresParent = false

    /// Whether the relay named a time until which it takes nothing of this kind; what only waits for
    /// its parent lets others pass.
    var holdsUpOthers: Bool { item.delivery.state == .held && notBefore != nil }
  }

  public init(limits: Limits, isRedating: Bool) {
    self.limits = limits
    self.isRedating = isRedating
  }

  /// Takes one input and returns what has to be done, in order.
  ///
  /// - Parameters:
  ///   - now: The steady clock's time, for waits.
  ///   - wall: The wall time, for dates and for what is recorded.
  public mutating func handle(
    _ input: Input, at now: Duration, wall: Timestamp, using random: any RandomSource
  ) -> [Effect] {
    effects.removeAll(keepingCapacity: true)
    switch input {
    case .added(let item): add(item, now, wall)
    case .connected: connected()
    case .disconnected: isConnected = false
    case .dateWindow(let window): dateWindow = window
    case .verdict(let id, let isAccepted, let text):
      verdict(id, isAccepted, text, now, wall, random)
    case .unanswered(let id, let isHanded, let why):
      unanswered(id, isHanded, why, now, wall, random)
    case .echoed(let id): accept(id)
    case .looked(let id, let isThere): looked(id, isThere, now, wall, random)
    case .redated(let item): redated(item)
    case .redatingFailed(let id, let why): redatingFailed(id, why)
    case .redatingDelayed(let id, let why): redatingDelayed(id, why, now, wall)
    case .retry(let id, let isOutdated): retry(id, isOutdated, wall)
    case .discarded(let id): forget(id)
    case .tick: break
    }
    advance(now, wall)
    return effects
  }

  /// The deliveries in the order in which they were written.
  public var deliveries: [Delivery] { order.compactMap { entries[$0]?.item.delivery } }

  /// Whether nothing is left that the engine will do by itself.
  public var isSettled: Bool { entries.values.allSatisfy { !$0.item.delivery.state.isOpen } }

  /// Whether nothing is left to do now: what is open waits for a time far off or for the user, or
  /// stands in its group behind what does.
  public var isAtRest: Bool {
    var lanesHeld: Set<Text> = []
    for id in order {
      guard let entry = entries[id], entry.item.delivery.state.isOpen else { continue }
      let lane = entry.item.delivery.group
      if entry.activity == .idle, let lane, lanesHeld.contains(lane) { continue }
      guard entry.activity == .idle, entry.item.delivery.state == .held else { return false }
      if entry.holdsUpOthers, let lane { lanesHeld.insert(lane) }
    }
    return true
  }

  public func isOpen(_ id: EventID) -> Bool {
    byEvent[id].flatMap { entries[$0] }.map { $0.item.delivery.state != .sent } ?? false
  }

  /// Whether the relay cannot know the message, and nothing is going on that would change that.
  public func isUnhanded(_ id: MessageID) -> Bool {
    guard let entry = entries[id] else { return false }
    return entry.activity == .idle && entry.item.delivery.handedAt == nil
      && entry.item.delivery.state != .sent
  }

  /// When `tick` is due.
  public var deadline: Duration? {
    guard isConnected else { return nil }
    return entries.values.compactMap { entry in
      entry.activity == .idle && entry.item.delivery.state.isOpen ? entry.notBefore : nil
    }.min()
  }
}

// MARK: What goes next

extension OutboxPolicy {
  private mutating func advance(_ now: Duration, _ wall: Timestamp) {
    guard isConnected else { return }
    endWaits(now)
    var busyLanes: Set<Text> = []
    var holders: [Text: MessageID] = [:]
    for id in order {
      guard let entry = entries[id], entry.item.delivery.state.isOpen else { continue }
      let lane = entry.item.delivery.group
      if let lane, busyLanes.contains(lane) {
        standBehind(holders[lane], id, entry)
        continue
      }
      if entry.activity != .idle {
        if let lane { busyLanes.insert(lane) }
        continue
      }
      if waitsForParent(id, entry) { continue }
      standBehind(nil, id, entry)
      if let lane { busyLanes.insert(lane) }
      if let notBefore = entry.notBefore, now < notBefore {
        if entry.holdsUpOthers, let lane { holders[lane] = id }
        continue
      }
      begin(id, wall)
    }
  }

  /// Says of a message that nothing else would be said of why it does not go; no longer than it holds.
  private mutating func standBehind(_ holder: MessageID?, _ id: MessageID, _ entry: Entry) {
    let said = entry.item.delivery.reason
    let why = holder.map { Text("\(Self.behind)\($0) of its group, which is held") }
    guard entry.activity == .idle, said != why,
      said.map({ $0.string.hasPrefix(Self.behind) }) ?? true
    else { return }
    change(id) { $0.reason = why }
  }

  private static let behind = "stands behind message "

  /// A wait that is over is none any more, also where something else is still in the way: an alarm
  /// for it would ring again and again, and nothing would come of it.
  private mutating func endWaits(_ now: Duration) {
    for id in order where entries[id]?.notBefore.map({ $0 <= now }) == true {
      entries[id]?.notBefore = nil
      entries[id]?.isWaitAsked = false
    }
  }

  /// Whether the message must stay behind one that it answers.
  private mutating func waitsForParent(_ id: MessageID, _ entry: Entry) -> Bool {
    guard let parent = entry.item.delivery.waitsFor, !entry.ignoresParent,
      let state = entries[parent]?.item.delivery.state, state != .sent
    else { return false }
    let why =
      state.isOpen
      ? "waits until message \(parent) is accepted"
      : "the message that it answers (\(parent)) was not accepted"
    hold(id, Text(why))
    return true
  }

  private mutating func begin(_ id: MessageID, _ wall: Timestamp) {
    guard let entry = entries[id] else { return }
    entries[id]?.notBefore = nil
    entries[id]?.isWaitAsked = false
    if entry.item.delivery.state == .unknown, !entry.isKnownAbsent {
      return look(id, entry)
    }
    if entry.item.isOutdated {
      return renewOnceAbsent(id, entry)
    }
    if entry.wasRefusedForReferences { return leaveWindow(id, entry) }
    if isTooOld(entry, wall), entry.item.delivery.handedAt == nil || entry.wasRefusedForTime {
      return leaveWindow(id, entry)
    }
    entries[id]?.activity = .publishing
    entries[id]?.isKnownAbsent = false
    change(id) { delivery in
      delivery.state = .sending
      delivery.attempts += 1
      delivery.reason = nil
      delivery.nextAttemptAt = nil
      delivery.handedAt = delivery.handedAt ?? wall
    }
    effects.append(.publish(id, entry.item.delivery.eventID))
  }

  private mutating func look(_ id: MessageID, _ entry: Entry) {
    entries[id]?.activity = .looking
    effects.append(.look(entry.item.delivery.eventID))
  }

  /// Whether the relay is known to take no event of this date any more.
  private func isTooOld(_ entry: Entry, _ wall: Timestamp) -> Bool {
    guard let dateWindow else { return false }
    return entry.item.createdAt < wall - dateWindow
  }

  /// The date is outside the relay's window: a new date, or the user's decision.
  private mutating func leaveWindow(_ id: MessageID, _ entry: Entry) {
    guard isRedating else {
      return change(id) { delivery in
        delivery.state = .expired
        // What the relay said of it; anything else told why it waited, and not why it ends.
        let isSaid = entry.wasRefusedForTime || entry.wasRefusedForReferences
        delivery.reason =
          (isSaid ? delivery.reason : nil) ?? "its date is outside the relay's window"
        delivery.nextAttemptAt = nil
      }
    }
    renewOnceAbsent(id, entry)
  }

  /// A relay that was handed the old event is asked for it first: a second one would be a double.
  private mutating func renewOnceAbsent(_ id: MessageID, _ entry: Entry) {
    if entry.item.delivery.handedAt != nil, !entry.isKnownAbsent { return look(id, entry) }
    renew(id)
  }

  /// A new event for the message, by what the old one was refused for.
  mutating func renew(_ id: MessageID) {
    entries[id]?.activity = .redating
    effects.append(entries[id]?.wasRefusedForReferences == true ? .refresh(id) : .redate(id))
  }

  mutating func hold(_ id: MessageID, _ why: Text) {
    guard let delivery = entries[id]?.item.delivery,
      delivery.state != .held || delivery.reason != why
    else { return }
    change(id) { delivery in
      delivery.state = .held
      delivery.reason = why
      delivery.nextAttemptAt = nil
    }
  }

  mutating func change(_ id: MessageID, _ body: (inout Delivery) -> Void) {
    guard var delivery = entries[id]?.item.delivery else { return }
    body(&delivery)
    guard delivery != entries[id]?.item.delivery else { return }
    entries[id]?.item.delivery = delivery
    effects.append(.record(delivery))
  }
}
