package import Nostr
package import NostrCrypto
package import Platform

/// A made-up community, the same for the same seed: six channels, twelve people, and their
/// messages, threads, reactions, edits and deletions over a few weeks, many in the same second.
///
/// Its keys are derived from the seed and therefore known to everyone; nothing real may be signed
/// with them.
package struct DemoCommunity: Sendable {
  package let seed: UInt64
  package let relayKey: SecretKey
  package let people: [SecretKey]
  /// Every event in the order in which the relay accepted it.
  package let events: [Event]

  /// The time of the last event.
  package static let end = Timestamp(1_760_000_000)

  /// - Parameter eventsCount: How many events a relay holds once it has accepted them all; what is
  ///   deleted or replaced on the way comes on top. Smaller numbers than the frame of channels and
  ///   people needs are raised to it.
  package static func make(
    seed: UInt64 = 1, eventsCount: Int = 5000, on work: any ParallelWork
  ) async throws(SignerError) -> DemoCommunity {
    var story = DemoStory(seed: seed, eventsCount: eventsCount)
    story.tell()
    let drafts = story.drafts
    let slices = max(1, work.width * 4)
    let signed = Lock([Result<[Event], SignerError>](repeating: .success([]), count: slices))
    await work.run(count: slices) { slice in
      let range = drafts.count * slice / slices..<drafts.count * (slice + 1) / slices
      let result = DemoCommunity.signed(drafts[range])
      signed.withLock { $0[slice] = result }
    }
    var events: [Event] = []
    for result in signed.withLock({ $0 }) { events += try result.get() }
    return DemoCommunity(
      seed: seed, relayKey: story.relayKey, people: story.people, events: events)
  }

  private static func signed(
    _ drafts: ArraySlice<(EventDraft, SecretKey)>
  ) -> Result<[Event], SignerError> {
    do throws(SignerError) {
      var events: [Event] = []
      for (draft, key) in drafts {
        let signer = RelaySigner(key, entropy: NoEntropy())
        events.append(try signer.sign(draft).event)
      }
      return .success(events)
    } catch {
      return .failure(error)
    }
  }
}

/// Zeros: the same signature for the same event. It would be wrong for a key that is a secret.
package struct NoEntropy: Entropy {
  package init() {}

  package func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    for index in buffer.indices { buffer[index] = 0 }
  }
}
