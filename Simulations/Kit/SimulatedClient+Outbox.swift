import Nostr
import SyncCore

/// The outbox: what the policy decides is done here, one input after the other.
extension SimulatedClient {
  func pump(_ input: OutboxPolicy.Input) {
    outboxInputs.append(input)
    guard !isPumping else { return }
    isPumping = true
    while isRunning, !outboxInputs.isEmpty {
      let input = outboxInputs.removeFirst()
      let effects = policy.handle(input, at: world.now, wall: world.wall, using: random)
      for effect in effects where isRunning { perform(effect) }
    }
    isPumping = false
    armOutboxAlarm()
  }

  func perform(_ effect: OutboxPolicy.Effect) {
    switch effect {
    case .record(let delivery): record(delivery)
    case .publish(let message, let id):
      guard let event = disk.messages[message], event.id == id else {
        return outboxInputs.append(.unanswered(id, isHanded: false, "the event is missing"))
      }
      take(.publish(event))
    case .look(let id):
      let ask = takeAskID()
      looks[ask] = (id, false)
      take(.ask(ask, HistoryWalk.Request(filter: Filter(ids: [id], kinds: [.message], limit: 1))))
    case .redate(let id), .refresh(let id): redate(id)
    }
  }

  func record(_ delivery: Delivery) {
    var delivery = delivery
    if settings.flaw == .believesTooEarly, delivery.state == .sending { delivery.state = .sent }
    disk.record(delivery)
    world.note("\(name) records \(delivery.message): \(delivery.state)")
    if delivery.state == .sent { Checkers.sent(delivery, by: self) }
  }

  func redate(_ id: MessageID) {
    guard let old = disk.messages[id] else { return }
    let draft = EventDraft(
      createdAt: world.wall, kind: old.kind, tags: old.tags, content: old.content)
    let event = SimulationKeys.sign(draft, with: key)
    world.note("\(name) re-dates \(id) as \(event.id.hex.prefix(8))")
    guard let item = disk.redate(id, as: event) else { return }
    outboxInputs.append(.redated(item))
  }

  func armOutboxAlarm() {
    guard isRunning, let due = policy.deadline, outboxAlarmDue.map({ due < $0 }) ?? true else {
      return
    }
    outboxAlarmDue = due
    let mine = life
    world.after(due - world.now) { [weak self] in
      guard let self, self.life == mine, self.outboxAlarmDue == due else { return }
      self.outboxAlarmDue = nil
      self.pump(.tick)
    }
  }
}
