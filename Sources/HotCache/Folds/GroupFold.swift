import Nostr

/// Folds what makes up a group: the directory of ids that were seen, relay-signed state by group
/// whoever signed it, notices and commands about membership, and which relay served what a relay
/// has to vouch for.
enum GroupFold {
  /// A longer id is not listed as a group; its events are stored and answered like any other.
  static let idByteCountMax = 65_536

  static func fold(_ folded: FoldedEvent, into batch: inout RowBatch) {
    let event = folded.event
    if event.kind.isGroupState {
      let group = event.identifier
      batch.add(.groupState(kind: event.kind, group: group), folded.entry)
      list(group, into: &batch)
    } else if MessageKinds.rows.contains(event.kind) || event.kind == .groupCreate,
      let group = event.group
    {
      list(group, into: &batch)
    }
    if membershipKinds.contains(event.kind), let group = event.group {
      for tag in event.tags where tag.letter == UInt8(ascii: "p") {
        guard let member = tag.bytes32(1) else { continue }
        let key: IndexKey =
          event.kind == .memberAdded || event.kind == .memberRemoved
          ? .membership(PublicKey(member), group: group, noticeBy: event.pubkey)
          : .membershipCommands(PublicKey(member), group: group)
        batch.add(key, folded.entry)
      }
    }
    if let source = folded.source, vouchedKinds.contains(event.kind) {
      batch.add(.served(event.id, by: source), Array(source.description.utf8))
    }
  }

  private static func list(_ group: Text, into batch: inout RowBatch) {
    guard group.count <= idByteCountMax else { return }
    batch.add(.group(group), Array(group.utf8))
  }

  static let membershipKinds: Set<EventKind> = [
    .groupPutUser, .groupRemoveUser, .memberAdded, .memberRemoved,
  ]

  /// Kinds whose effect depends on the relay that served them.
  static let vouchedKinds: Set<EventKind> = membershipKinds.union([
    .groupMetadata, .groupAdmins, .groupMembers, .groupRoles, .groupDeleteEvent,
  ])
}

extension EventKind {
  var isGroupState: Bool { (39000...39003).contains(number) }
}
