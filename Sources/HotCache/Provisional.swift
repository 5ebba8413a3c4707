import Nostr

extension EventKind {
  static let profile: EventKind = 0
  static let deletion: EventKind = 5
  static let reaction: EventKind = 7
  static let message: EventKind = 9
  static let threadRoot: EventKind = 11
  static let comment: EventKind = 1111
  static let legacyMessage: EventKind = 40001
  static let messageV2: EventKind = 40002
  static let edit: EventKind = 40003
  static let diff: EventKind = 40008
  static let systemMessage: EventKind = 40099
  static let forumPost: EventKind = 45001
  static let forumComment: EventKind = 45003
  static let groupMetadata: EventKind = 39000
  static let groupAdmins: EventKind = 39001
  static let groupMembers: EventKind = 39002
  static let groupRoles: EventKind = 39003
  static let groupPutUser: EventKind = 9000
  static let groupRemoveUser: EventKind = 9001
  static let groupDeleteEvent: EventKind = 9005
  static let groupCreate: EventKind = 9007
  static let memberAdded: EventKind = 44100
  static let memberRemoved: EventKind = 44101
  static let zapReceipt: EventKind = 9735
}
