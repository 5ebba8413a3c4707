public import EventLog
public import Nostr

/// What is kept about a community beside its events.
public struct CommunitySettings: Hashable, Sendable {
  /// The first is its home, to which everything is written; the others are replicas to read from.
  /// None: the community is offline.
  public var relays: [RelayURL]
  /// The name of the key file to sign with; nil: the default identity.
  public var identity: Text?
  /// The key that the user accepted as the community's own, to which group state is held.
  public var relaySelf: PublicKey?

  public init(
    relays: [RelayURL] = [], identity: Text? = nil, relaySelf: PublicKey? = nil
  ) {
    self.relays = relays
    self.identity = identity
    self.relaySelf = relaySelf
  }

  public var home: RelayURL? { relays.first }

  /// Keys that relays name as their own now and that were not accepted; nothing they sign counts.
  public internal(set) var offeredSelves: [RelayURL: PublicKey] = [:]

  /// Takes `key` for the community's own from now on.
  public mutating func accept(_ key: PublicKey) {
    relaySelf = key
    offeredSelves = offeredSelves.filter { $0.value != key }
  }

  public init(_ reader: LogReader) throws(LogError) {
    func text(_ key: String) throws(LogError) -> String? {
      try reader.setting(key).map { String(decoding: $0, as: UTF8.self) }
    }
    relays = (try text(Key.relays) ?? "").split(separator: "\n").compactMap { RelayURL($0) }
    identity = try reader.setting(Key.identity).map { Text(utf8: $0) }
    relaySelf = try text(Key.relaySelf).flatMap { PublicKey(hex: $0) }
    for line in (try text(Key.offeredSelves) ?? "").split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 2, let relay = RelayURL(String(words[0])),
        let key = PublicKey(hex: words[1])
      else { continue }
      offeredSelves[relay] = key
    }
  }

  /// Writes what differs from what is there.
  public func save(to log: EventLog) async throws(LogError) {
    let before = try CommunitySettings(log.reader)
    if relays != before.relays {
      let list = relays.map(\.description).joined(separator: "\n")
      try await log.setSetting(Key.relays, relays.isEmpty ? nil : Array(list.utf8))
    }
    if identity != before.identity {
      try await log.setSetting(Key.identity, identity.map { Array($0.utf8) })
    }
    if relaySelf != before.relaySelf {
      try await log.setSetting(Key.relaySelf, relaySelf.map { Array($0.hex.utf8) })
    }
    if offeredSelves != before.offeredSelves {
      let list = offeredSelves.sorted { $0.key < $1.key }
        .map { "\($0.key) \($0.value.hex)" }.joined(separator: "\n")
      try await log.setSetting(Key.offeredSelves, list.isEmpty ? nil : Array(list.utf8))
    }
  }

  private enum Key {
    static let relays = "community.relays"
    static let identity = "community.identity"
    static let relaySelf = "community.self"
    static let offeredSelves = "community.self.offered"
  }
}
