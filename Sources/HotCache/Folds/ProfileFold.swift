import Nostr

/// Folds a profile to its names, folded to lower case. A name that its owner gave up keeps its
/// row; whoever looks a name up compares it with the current profile.
enum ProfileFold {
  static func fold(_ folded: FoldedEvent, into batch: inout RowBatch) {
    guard folded.event.kind == .profile else { return }
    let fields = ProfileFields(content: folded.event.content)
    for name in [fields.name, fields.displayName] {
      guard let name else { continue }
      batch.add(.name(fold(name), folded.event.pubkey), [])
    }
  }

  /// Bytes under which a name is found; a prefix of a name folds to a prefix of these.
  static func fold(_ name: Text) -> [UInt8] {
    Array(name.string.lowercased().utf8.prefix(SmallKey.nameByteCountMax))
  }
}

/// What a kind 0 says about its author. Content that is not a JSON object says nothing, but shows
/// that there is a profile.
struct ProfileFields: Hashable, Sendable {
  var name: Text?
  var displayName: Text?
  var about: Text?
  var picture: Text?
  var nip05: Text?
  var lud16: Text?

  init(content: Text) {
    // An unreadable profile is a seen one; there is nobody to tell about it.
    guard let json = try? JSONValue.parse(content.utf8) else { return }
    func field(_ key: Text) -> Text? {
      guard let text = json[key]?.string, !text.isEmpty else { return nil }
      return text.owned()
    }
    name = field("name")
    displayName = field("display_name") ?? field("displayName")
    about = field("about")
    picture = field("picture")
    nip05 = field("nip05")
    lud16 = field("lud16")
  }
}
