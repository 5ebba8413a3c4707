import EventLog
import Nostr
import NostrCrypto
import SyncCore

enum RedatingError: Error {
  case log(LogError)
  case signing(String)
  case gone
}

/// Gives a message that a relay takes no more a new date, and with it a new id; what waits for it
/// and names its old id is signed anew to name the new one.
struct Redater: Sendable {
  let store: CommunityStore
  let desk: LogDesk
  let signer: any Signer
  let clock: any SyncClock

  /// - Returns: Every message that has a new event now, in the order of writing.
  func redate(
    _ id: MessageID, relay: RelayURL
  ) async throws(RedatingError) -> [(message: Message, createdAt: Timestamp)] {
    let now = clock.now()
    var renamed: [EventID: EventID] = [:]
    var result: [(message: Message, createdAt: Timestamp)] = []
    for candidate in try await candidates(id, relay) {
      guard let event = try await event(candidate.eventID) else { throw .gone }
      let tags = Self.tags(event.tags, renaming: renamed)
      guard candidate.message == id || tags != event.tags else { continue }
      let draft = EventDraft(
        createdAt: max(now, event.createdAt), kind: event.kind, tags: tags,
        content: event.content)
      let signed = try await sign(draft)
      renamed[event.id] = signed.event.id
      result.append(
        (message: try await store(candidate.message, signed), createdAt: draft.createdAt))
    }
    if result.isEmpty { throw .gone }
    return result
  }

  /// The message itself, and those written after it that no relay was handed yet.
  private func candidates(
    _ id: MessageID, _ relay: RelayURL
  ) async throws(RedatingError) -> [Delivery] {
    do throws(LogError) {
      return try await desk.openDeliveries().filter { delivery in
        delivery.relay == relay
          && (delivery.message == id || delivery.message > id && delivery.handedAt == nil)
      }.sorted { $0.message < $1.message }
    } catch {
      throw .log(error)
    }
  }

  private func event(_ id: EventID) async throws(RedatingError) -> Event? {
    do throws(LogError) { return try await desk.event(id) } catch { throw .log(error) }
  }

  private func sign(_ draft: EventDraft) async throws(RedatingError) -> VerifiedEvent {
    do throws(SignerError) {
      return try await signer.sign(draft)
    } catch {
      throw .signing(error.description)
    }
  }

  private func store(
    _ id: MessageID, _ event: VerifiedEvent
  ) async throws(RedatingError) -> Message {
    do throws(LogError) {
      return try await store.redate(id, as: event)
    } catch {
      throw .log(error)
    }
  }

  /// The tags with every reference to a renamed event changed.
  static func tags(_ tags: Tags, renaming renamed: [EventID: EventID]) -> Tags {
    guard !renamed.isEmpty else { return tags }
    let lists = tags.map { tag -> [Text] in
      let elements = Array(tag)
      guard let letter = tag.letter, "eEq".utf8.contains(letter), let old = tag.bytes32(1),
        let new = renamed[EventID(old)]
      else { return elements }
      return [elements[0], Text(new.hex)] + elements.dropFirst(2)
    }
    return Tags(lists)
  }
}
