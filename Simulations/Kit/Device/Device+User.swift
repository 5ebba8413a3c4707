import EventLog
package import Nostr
import SyncCore
import SyncEngine

/// What a person does with the program.
extension Device {
  /// Writes a message, and remembers it once the program has taken it.
  package func write(
    _ text: Text, in group: Text, kind: EventKind = .message, replyingTo parent: EventID? = nil
  ) {
    guard let life, let engine = life.engine else { return }
    var tags: [[Text]] = [["h", group]]
    if let parent { tags.append(["e", Text(parent.hex)]) }
    let draft = EventDraft(
      createdAt: clock.now(), kind: kind, tags: Tags(tags), content: text)
    world.note("\(name) writes \(text)")
    give(draft, text, to: engine, life)
  }

  /// Writes once more what the program could not say that it had taken, as people do after a crash;
  /// the token keeps it one message.
  func writeAgain() {
    guard let life, let engine = life.engine else { return }
    for (text, draft) in memory.unanswered.sorted(by: { $0.key < $1.key }) {
      world.note("\(name) writes \(text) again")
      give(draft, text, to: engine, life)
    }
  }

  private func give(
    _ draft: EventDraft, _ text: Text, to engine: Engine, _ life: DeviceLife
  ) {
    memory.attempts(text, draft)
    world.spawn { [self] in
      do throws(EngineError) {
        let message = try await engine.publish(draft, token: text)
        // A program that was killed meanwhile has told nobody.
        guard !life.isDead else { return }
        memory.wrote(text, message.id, message.eventID)
      } catch {
        guard !life.isDead else { return }
        world.note("\(name) could not take \(text): \(life.told(error))")
      }
    }
  }

  package func goOffline() {
    guard let engine else { return }
    world.note("\(name) goes offline")
    world.spawn { await engine.goOffline() }
  }

  package func goOnline() {
    guard let engine else { return }
    world.note("\(name) goes online")
    world.spawn { await engine.goOnline() }
  }

  /// The computer was asleep, or its network changed.
  package func wakes() {
    guard let engine else { return }
    world.spawn { await engine.networkChanged() }
  }
}
