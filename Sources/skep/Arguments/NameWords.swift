import Nostr

/// How keys and events are written on a command line: hex, or NIP-19 with or without `nostr:`.
enum NameWords {
  static func publicKey(_ word: String) -> PublicKey? {
    if let key = PublicKey(hex: word.lowercased()) { return key }
    // A word that is no entity is no key either; the caller says what was expected.
    switch try? NIP19.decode(word) {
    case .npub(let key): return key
    case .nprofile(let key, _): return key
    default: return nil
    }
  }

  static func eventID(_ word: String) -> EventID? {
    if let id = EventID(hex: word.lowercased()) { return id }
    switch try? NIP19.decode(word) {
    case .note(let id): return id
    case .nevent(let id, _, _, _): return id
    default: return nil
    }
  }

  /// A key as people share it.
  static func npub(_ key: PublicKey) -> String { NIP19.encode(.npub(key)) ?? key.hex }
}
