/// The cases that a relay of the kind this project is made for holds; one that has a feature less
/// is expected to fail exactly the cases of that feature.
package enum ContractCase: String, CaseIterable, Sendable, CustomStringConvertible {
  case authenticates = "a session authenticates"
  case checksChallenge = "an answer to another challenge is refused"
  case checksRelay = "an answer for another relay is refused"
  case checksFreshness = "an old answer is refused"
  case refusesForeignGroup = "a message to a group of others is refused"
  case needsGroup = "a message without a group is refused"
  case clientRefusesRelayKinds = "a person's signer refuses the kinds of the relay without asking"
  case relayRefusesRelayKinds = "the relay refuses its own kinds from a person"
  case takesPresence = "presence needs no group"
  case takesWithdrawal = "withdrawing a reaction needs no group, and takes it away"
  case evaluatesFilters = "a query gets only what its filter names"
  case withholdsState = "group state never arrives live, only by query"
  case announcesMembership = "a change of membership is announced"
  case opensConversation = "opening a conversation gives its channel"
  case reopensConversation = "opening it again gives the same channel"
  case passesTyping = "typing reaches a live subscriber and is never stored"
  case replacesReadState = "a newer read state replaces an older one, also where that comes late"
  case selectsByTag = "a filter by topic gets the read state only"
  case takesProfileAndReport = "a profile and a report need no group"
  case survivesRefusedReceipts = "whatever becomes of the receipts, messages and reactions arrive"
  case survivesUnknownKinds = "whatever becomes of unknown kinds, messages and reactions arrive"

  package var description: String { rawValue }

  /// As it is spelled in a list of cases that some relay lacks.
  package var name: String { "\(self.label)" }

  private var label: String {
    switch self {
    case .authenticates: "authenticates"
    case .checksChallenge: "checks-challenge"
    case .checksRelay: "checks-relay"
    case .checksFreshness: "checks-freshness"
    case .refusesForeignGroup: "foreign-group"
    case .needsGroup: "needs-group"
    case .clientRefusesRelayKinds: "client-relay-kinds"
    case .relayRefusesRelayKinds: "relay-kinds"
    case .takesPresence: "presence"
    case .takesWithdrawal: "withdrawal"
    case .evaluatesFilters: "filters"
    case .withholdsState: "withholds-state"
    case .announcesMembership: "announces-membership"
    case .opensConversation: "opens-conversation"
    case .reopensConversation: "reopens-conversation"
    case .passesTyping: "typing"
    case .replacesReadState: "read-state"
    case .selectsByTag: "topic"
    case .takesProfileAndReport: "profile-and-report"
    case .survivesRefusedReceipts: "receipts"
    case .survivesUnknownKinds: "unknown-kinds"
    }
  }
}
