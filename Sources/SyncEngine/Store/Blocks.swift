public import EventLog
import HotCache
public import Nostr

/// The people whose words are not shown here. A local decision: nothing of it is published, and
/// their events stay in the log, so that unblocking brings everything back.
public struct Blocks: Sendable {
  public struct Entry: Sendable, Hashable {
    public let key: PublicKey
    public let since: Timestamp
  }

  /// The newest first.
  public let entries: [Entry]

  public var keys: Set<PublicKey> { Set(entries.map(\.key)) }

  private static let prefix = "block."

  public init(_ reader: LogReader) throws(LogError) {
    entries = try reader.settings(prefix: Self.prefix).compactMap { row in
      guard let key = PublicKey(hex: row.key.dropFirst(Self.prefix.count)) else { return nil }
      let since = Int64(String(decoding: row.value, as: UTF8.self)) ?? 0
      return Entry(key: key, since: Timestamp(since))
    }.sorted { left, right in
      left.since != right.since ? left.since > right.since : left.key < right.key
    }
  }

  fileprivate static func setting(_ key: PublicKey) -> String { prefix + key.hex }
}

extension CommunityStore {
  /// Hides what a person wrote, or no longer; on the disk when it returns.
  public func setBlocked(
    _ key: PublicKey, _ isBlocked: Bool, at time: Timestamp
  ) async throws(LogError) {
    guard try Blocks(reader).keys.contains(key) != isBlocked else { return }
    try await log.setSetting(
      Blocks.setting(key), isBlocked ? Array(String(time.seconds).utf8) : nil)
    try loadBlocks()
  }

  func loadBlocks() throws(LogError) { views.setBlocked(try Blocks(reader).keys) }
}
