import Nostr
import NostrCrypto
import Testing

/// Chance that a test can repeat.
struct SeededEntropy: Entropy {
  let seed: UInt8

  func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    for index in buffer.indices {
      buffer[index] = seed &+ UInt8(truncatingIfNeeded: index &* 151 &+ 7)
    }
  }
}

extension SecretKey {
  /// The key whose number is `value`, 1…255.
  static func small(_ value: UInt8) throws -> SecretKey {
    try SecretKey(bytes: [UInt8](repeating: 0, count: 31) + [value])
  }
}

extension EventDraft {
  static func note(_ content: Text, kind: EventKind = 1, tags: Tags = .none) -> EventDraft {
    EventDraft(createdAt: 1_700_000_000, kind: kind, tags: tags, content: content)
  }
}

extension Event {
  func with(
    id: EventID? = nil, pubkey: PublicKey? = nil, content: Text? = nil, sig: Signature? = nil
  ) -> Event {
    Event(
      id: id ?? self.id, pubkey: pubkey ?? self.pubkey, createdAt: createdAt, kind: kind,
      tags: tags, content: content ?? self.content, sig: sig ?? self.sig)
  }
}
