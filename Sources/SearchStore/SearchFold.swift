import EventLog
import HotCache
import Nostr
import SyncCore

/// Folds log entries to texts. Pure; a text's row number comes from its event alone, so that any
/// order of the same events gives the same rows.
enum SearchFold {
  static func document(of entry: LogEntry) -> SearchFile.Document? {
    guard case .event(let logged) = entry.body else { return nil }
    let event = logged.event
    let isEdit = event.kind == .edit
    guard isEdit || (event.isMessage && event.kind != .systemMessage) else { return nil }
    return SearchFile.Document(
      row: row(event), sequence: entry.sequence.number, text: text(event),
      scope: Array(scope(event, isEdit: isEdit).utf8))
  }

  /// A thread is found by its title too.
  private static func text(_ event: Event) -> ArraySlice<UInt8> {
    guard event.kind == .threadRoot || event.kind == .forumPost,
      let title = event.tags.firstValue("title") ?? event.tags.firstValue("subject")
    else { return SearchText.indexed(event.content) }
    return SearchText.indexed(Text(utf8: Array(title.utf8) + [0x0a] + Array(event.content.utf8)))
  }

  // MARK: Row numbers

  private static let idBits = 30

  /// Seconds, then the beginning of the id: rows rise with time.
  static func row(_ event: Event) -> Int64 {
    let prefix = event.id.bytes.withUnsafeBytes {
      UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self))
    }
    return first(event.createdAt) | Int64(prefix >> 2)
  }

  /// The lowest and the highest row of a second.
  static func first(_ time: Timestamp) -> Int64 {
    Int64(UInt32(clamping: time.seconds)) << idBits
  }

  static func last(_ time: Timestamp) -> Int64 { first(time) | (1 << idBits - 1) }

  // MARK: Scope

  static let messages = "message"
  static let edits = "edit"

  private static func scope(_ event: Event, isEdit: Bool) -> String {
    let kind = isEdit ? edits : messages
    let place = event.group.map { " " + group($0) } ?? ""
    return kind + place + " " + author(event.pubkey)
  }

  /// One word for a group, whatever its id looks like.
  static func group(_ id: Text) -> String {
    "g" + String(StableHash.value(id.utf8, salt: 7), radix: 16)
  }

  static func author(_ key: PublicKey) -> String { "a" + key.hex.prefix(16) }
}
