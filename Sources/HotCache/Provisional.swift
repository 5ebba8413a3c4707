package import Nostr
package import SyncCore

package struct LogEntry: Sendable {
  package let sequence: LogSequence
  package let body: Body
  package enum Body: Sendable {
    case event(LoggedEvent)
    case fact(Fact)
  }
  package init(sequence: LogSequence, body: Body) {
    self.sequence = sequence
    self.body = body
  }
}

package struct LoggedEvent: Sendable {
  package let event: Event
  package let idForm: IdForm
  package let receivedAt: Timestamp
  package let source: RelayURL?
  package init(event: Event, idForm: IdForm, receivedAt: Timestamp, source: RelayURL?) {
    self.event = event
    self.idForm = idForm
    self.receivedAt = receivedAt
    self.source = source
  }
}

package enum Fact: Sendable, Hashable {
  case served(EventID, by: RelayURL)
  case relaySelf(RelayURL, PublicKey?)
  case discarded(EventID)
  case restored(EventID)
  case redated(old: EventID, new: EventID)
}

enum JSONValue {
  case object([(Text, JSONValue)]), string(Text), other
  static func parse(_ bytes: some Collection<UInt8>) throws -> JSONValue { .other }
  subscript(key: Text) -> JSONValue? { nil }
  var string: Text? { nil }
}
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
