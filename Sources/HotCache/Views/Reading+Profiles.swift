import Nostr

/// Profiles and the lookup of people by name.
extension Reading {
  func profile(_ key: PublicKey, now: Timestamp) throws(StoreError) -> ProfileRow? {
    let slot = Slot(kind: .profile, author: key, identifier: nil)
    guard let row = try current(slot, now: now) else { return nil }
    let fields = ProfileFields(content: row.content)
    return ProfileRow(
      pubkey: key, createdAt: row.createdAt, name: fields.name, displayName: fields.displayName,
      about: fields.about, picture: fields.picture, nip05: fields.nip05, lud16: fields.lud16,
      content: row.content.owned())
  }

  /// The people whose name or display name begins with `prefix`, whatever its case, by key.
  func profiles(named prefix: Text, limit: Int, now: Timestamp) throws(StoreError)
    -> [ProfileRow]
  {
    let folded = ProfileFold.fold(prefix)
    let names = try store.small(
      prefix: SmallKey.names(prefix: folded), after: nil, limit: ViewLimits.namesReadMax)
    let keys = Set(names.compactMap { Bytes32($0.key.bytes.suffix(32)) }.map(PublicKey.init))
    var result: [ProfileRow] = []
    for key in keys.sorted() {
      guard result.count < limit, let profile = try profile(key, now: now) else { continue }
      let fits = [profile.name, profile.displayName].contains { name in
        name.map { ProfileFold.fold($0).starts(with: folded) } ?? false
      }
      if fits { result.append(profile) }
    }
    return result
  }
}
