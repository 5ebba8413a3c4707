import Nostr
import SyncCore

/// What a scope is about, in a person's words.
enum ScopeWords {
  static func text(_ filter: Filter) -> String {
    if filter.tags.isEmpty, filter.authors == nil, filter.ids == nil {
      guard let kinds = filter.kinds else { return "everything" }
      if kinds == [.groupMetadata] { return "the list of groups" }
      if kinds == [.profile] { return "profiles" }
    }
    if let authors = filter.authors, filter.kinds == [.profile], filter.tags.isEmpty {
      return authors.count == 1 ? "the profile of 1 person" : "profiles of \(authors.count) people"
    }
    if let (what, group) = ofGroup(filter) {
      return "\(what) of \(SafeText.line(group, cells: 40))"
    }
    return SafeText.line(String(decoding: filter.json(), as: UTF8.self), cells: 60)
  }

  /// What of which group a scope is about; nil where it is not about one group.
  static func ofGroup(_ filter: Filter) -> (what: String, group: Text)? {
    guard filter.tags.count == 1, filter.ids == nil, filter.authors == nil else { return nil }
    for (letter, values) in filter.tags where values.count == 1 {
      if letter == UInt8(ascii: "d") { return ("the state", values[0]) }
      if letter == UInt8(ascii: "h") { return (part(filter.kinds), values[0]) }
    }
    return nil
  }

  private static func part(_ kinds: [EventKind]?) -> String {
    guard let kinds else { return "all" }
    let set = Set(kinds)
    if set == Set(SyncScopes.contentKinds) { return "messages" }
    if set == Set(SyncScopes.controlKinds) { return "reactions, edits and deletions" }
    if set == Set(SyncScopes.moderationKinds) { return "moderation" }
    return "kinds " + kinds.map { String($0.number) }.joined(separator: ", ")
  }
}
