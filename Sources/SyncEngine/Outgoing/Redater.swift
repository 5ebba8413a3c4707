import EventLog
import Nostr
import NostrCrypto
import SyncCore

enum RedatingError: Error {
  case log(LogError)
  case signing(String)
  case gone
  case foreign
  case superseded
  /// What was written before it is dated as far ahead as relays take; the clock has to come up.
  case early

  var description: Text {
    switch self {
    case .log(let error): Text(error.description)
    case .signing(let why): Text(why)
    case .gone: "the message is gone"
    case .foreign: "another key signed it, so it cannot be signed anew"
    case .early: "waits for the clock, to come after what was written before it"
    case .superseded: "a newer version of it was written since"
    }
  }
}

/// Gives a message that a relay does not take as it is a new date, and with it a new id; what waits
/// for it and names its old id is signed anew to name the new one.
struct Redater: Sendable {
  let store: CommunityStore
  let desk: LogDesk
  let signer: any Signer
  let clock: any SyncClock
  let limits: Limits

  /// - Returns: Every message that has a new event now, in the order of writing.
  func redate(
    _ id: MessageID, relay: RelayURL
  ) async throws(RedatingError) -> [(message: Message, event: Event)] {
    let author = try await author()
    var renamed: [EventID: EventID] = [:]
    var result: [(message: Message, event: Event)] = []
    for candidate in try await candidates(id, relay) {
      guard let event = try await event(candidate.eventID) else { throw .gone }
      // Also what was signed anew before this: what the relay refused meanwhile did not follow then.
      let names = try await newNames(in: event.tags).merging(renamed) { $1 }
      let tags = Self.tags(event.tags, renaming: names)
      guard candidate.message == id || tags != event.tags else { continue }
      // What somebody else signed is passed on as it is, or not at all.
      guard event.pubkey == author else { throw .foreign }
      let signed = try await sign(
        EventDraft(
          createdAt: try await date(for: event, candidate.message, isFirst: result.isEmpty),
          kind: event.kind,
          tags: try await references(tags, relay, author), content: event.content))
      renamed[event.id] = signed.event.id
      result.append(
        (message: try await store(candidate.message, signed), event: signed.event))
    }
    if result.isEmpty { throw .gone }
    return result
  }

  /// Now, or just after what was written before it, so that both keep their order.
  private func date(
    for event: Event, _ id: MessageID, isFirst: Bool
  ) async throws(RedatingError) -> Timestamp {
    await store.caughtUp()
    let slot = EventAddress(of: event)
    let holder: Timestamp? = if let slot { await desk.holderDate(slot) } else { nil }
    // With a new date it would win over what was written after it.
    if let holder, holder > event.createdAt { throw .superseded }
    let now = clock.now()
    let dates = MessageDates(lead: limits.datingLeadMax, setBack: 0)
    let last = try await lastWritten(before: id)
    guard let next = dates.next(after: last, at: now) else {
      // What follows names the new event already: it cannot wait for itself.
      if isFirst { throw .early }
      return now + limits.datingLeadMax
    }
    return event.createdAt <= now + limits.datingLeadMax ? max(next, event.createdAt) : next
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

  private func author() async throws(RedatingError) -> PublicKey {
    do throws(SignerError) {
      return try await signer.publicKey()
    } catch {
      throw .signing(error.description)
    }
  }

  private func lastWritten(before id: MessageID) async throws(RedatingError) -> Timestamp? {
    do throws(LogError) {
      return try await desk.lastWrittenDate(before: id)
    } catch {
      throw .log(error)
    }
  }

  private func references(
    _ tags: Tags, _ relay: RelayURL, _ author: PublicKey
  ) async throws(RedatingError) -> Tags {
    do throws(LogError) {
      return try await TimelineReferences(desk: desk, clock: clock, limits: limits)
        .tags(tags, for: relay, author: author)
    } catch {
      throw .log(error)
    }
  }

  private func newNames(in tags: Tags) async throws(RedatingError) -> [EventID: EventID] {
    do throws(LogError) { return try await desk.newNames(in: tags) } catch { throw .log(error) }
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

  /// The events that these tags refer to.
  static func named(in tags: Tags) -> [EventID] {
    tags.compactMap { tag in
      guard let letter = tag.letter, "eEq".utf8.contains(letter) else { return nil }
      return tag.bytes32(1).map { EventID($0) }
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
