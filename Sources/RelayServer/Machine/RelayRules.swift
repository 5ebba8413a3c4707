package import Nostr

/// How a relay behaves, one switch a rule.
///
/// The defaults are an ordinary NIP-29 relay that keeps its word. Every other value is something
/// that a deployed relay was seen doing, good or bad, so that a client can be tested against it;
/// `RelayRules+Presets.swift` has the combinations that belong together.
package struct RelayRules: Sendable, Hashable {
  package var authentication = AuthenticationRules()
  package var reading = ReadingRules()
  package var writing = WritingRules()
  package var groups = GroupRules()
  package var limits = LimitRules()
  package var answers = AnswerRules()

  package init() {}
}

/// NIP-42: who must say who they are, and what is checked when they do.
package struct AuthenticationRules: Sendable, Hashable {
  /// Sends a challenge when a connection opens; off, it never does.
  package var challenges = true
  package var isNeededToRead = false
  package var isNeededToWrite = true
  package var checksChallenge = true
  package var checksHost = true
  /// How far an AUTH event's time may be off, in seconds; nil for no check.
  package var ageMax: Int64? = 600
  /// A second AUTH on a socket is refused, and a failed one spoils it (Buzz).
  package var isOncePerSocket = false
  /// A socket not authenticated by then is closed (Buzz: 5 s).
  package var deadline: Duration?
  /// The only keys let in; nil lets everyone in.
  package var members: Set<PublicKey>?
  package var banned: Set<PublicKey> = []

  package init() {}
}

/// What a REQ may ask for and what it gets.
package struct ReadingRules: Sendable, Hashable {
  /// Off, a relay sends whatever it has (a client must check what it gets).
  package var evaluatesFilters = true
  /// Kinds that close every REQ naming one of them.
  package var refusedKinds: Set<EventKind> = []
  /// Kinds that may be asked for only with `#p` of one's own key.
  package var kindsGatedByRecipient: Set<EventKind> = []
  /// Kinds that may be asked for only with `authors` of one's own key.
  package var kindsGatedByAuthor: Set<EventKind> = []
  /// The most stored events a filter gets, whatever its limit says.
  package var pageMax = 500
  package var order = PageOrder.newestFirst
  package var ignoresUntil = false
  /// An `until` of 0 asks for everything, as where 0 stands for "not set".
  package var readsZeroUntilAsNone = false
  /// A filter with `until` and `before_id` goes on behind that event inside its second (Buzz).
  package var servesKeysetCursor = false
  /// A filter with a key that means nothing here is refused, as NIP-01 has it; off, the key asks
  /// for nothing, so that the answer is wider than what was asked for.
  package var refusesUnknownKeys = true
  /// A filter that names no kinds is answered with nothing.
  package var ignoresKindlessFilters = false
  package var ignoresSince = false
  /// A page longer than this loses its tail without a word, as after a database error.
  package var truncatedTo: Int?
  package var fanOut = FanOut.matching
  /// A live REQ with `since` is served its history and then nothing.
  package var isDeafToSince = false
  /// 39000–39002 come by query only, never live.
  package var withholdsGroupState = false
  /// An id closed once on a connection is silently dead there.
  package var closedIDsAreDead = false
  /// After a CLOSE one more live event is sent to the closed id.
  package var sendsAfterClose = false
  /// NIP-45.
  package var counting = Counting.exact
  /// NIP-77.
  package var reconciliation = Reconciliation.refusedByNotice
  /// NIP-CW: windows of a channel by `POST /query` (Buzz).
  package var windows = Windows.unserved

  package init() {}

  package enum Reconciliation: Sendable, Hashable {
    /// Sets of up to so many events are compared, larger ones refused.
    case served(itemsMax: Int)
    case refusedByNotice
    case refusedByClosed
    case refusedByError
    /// The connection is closed on whoever asks.
    case refusedByClosing
    /// The answer is no message of the protocol.
    case garbled
    case ignored
  }

  package enum Windows: Sendable, Hashable {
    case unserved
    /// Of so many rows at most, with replies as rows like others or without them.
    case served(rowsMax: Int, projectsReplies: Bool)
    /// Said to be served, and refused with this status.
    case refused(status: Int)
    /// The answer is no JSON.
    case garbled
    /// There is no answer.
    case ignored
    /// The answer is so many bytes long.
    case oversized(bytes: Int)
    /// The question is answered as if it were an ordinary one.
    case unread
  }

  package enum FanOut: Sendable, Hashable {
    /// Every subscription whose filter matches.
    case matching
    /// Channel events go only to REQs that name exactly that one channel, all others only to REQs
    /// that name none (Buzz).
    case singleChannel
    /// No live events at all.
    case none
  }

  package enum Counting: Sendable, Hashable {
    case exact
    case approximate
    case unsupported
  }
}

/// What an EVENT must be.
package struct WritingRules: Sendable, Hashable {
  /// A read-only replica refuses every EVENT.
  package var isReplica = false
  package var checksSignatures = true
  package var refusesRelaySignedKinds = true
  /// The only kinds taken from clients; nil takes all.
  package var allowedKinds: Set<EventKind>?
  package var refusedKinds: Set<EventKind> = []
  /// An event must be signed by the key that its connection authenticated.
  package var refusesForeignAuthors = false
  /// How old an event may be, in seconds (NIP-11's `created_at_lower_limit`).
  package var ageMax: Int64?
  /// How far ahead an event may be dated, in seconds (`created_at_upper_limit`).
  package var leadMax: Int64?
  package var contentBytesMax = 256 << 10
  package var tagsMax = 2000
  /// A kind 5 counts for this many of its targets; nil counts them all.
  package var deletionTargetsMax: Int?
  /// A kind 5 that does not name exactly one target is refused (Buzz).
  package var needsOneDeletionTarget = false
  /// A reply's parent must be a known event of the same channel (Buzz).
  package var checksParent = false
  /// An event of a group must name events among the group's last 50 in `previous` (NIP-29).
  package var needsReferences = false
  /// The same reaction by the same author to the same target is refused (Buzz).
  package var refusesRepeatedReactions = false
  /// What is said of an event that is held already.
  package var duplicates = Duplicates.accepted
  /// A slot keeps its newest version; off, every version is kept and served.
  package var replacesVersions = true
  /// Ephemeral events are stored and served like others.
  package var storesEphemeralEvents = false

  package init() {}

  package enum Duplicates: Sendable, Hashable, CaseIterable {
    /// OK true with `duplicate:`, as NIP-01 has it.
    case accepted
    /// OK true without a word.
    case acceptedInSilence
    /// OK false with `duplicate:`.
    case refused
  }
}

/// NIP-29 and what Buzz adds to it.
package struct GroupRules: Sendable, Hashable {
  /// Off, the relay knows no groups: an `h` is a tag like any other.
  package var areManaged = true
  /// Kinds that are refused without an `h` tag.
  package var kindsNeedingGroup: Set<EventKind> = GroupRules.ordinaryKindsNeedingGroup
  /// An event for a group that does not exist is refused.
  package var refusesUnknownGroups = true
  /// Events of a private or restricted group are taken from its members only.
  package var scopesWriting = true
  /// Events of a private group are shown to its members only.
  package var scopesReading = true
  /// 44100 and 44101 tell people that they were added and removed (Buzz).
  package var announcesMembership = false
  /// 39003 lists the roles.
  package var announcesRoles = true
  /// 39000 is written as Buzz writes it: `public` or `private`, and `closed` always.
  package var marksEveryGroupClosed = false
  /// 39002 holds a member's role in element 3 (Buzz).
  package var listsRolesOfMembers = false
  /// 41010 opens a conversation and answers with its channel (Buzz).
  package var opensConversations = false
  /// A command that comes again, byte for byte, is accepted without its answer (Buzz).
  package var recognisesRepeatedCommands = false
  /// A reaction or deletion without `h` belongs to its target's channel (Buzz).
  package var resolvesScopeByTarget = false
  /// A 9021 by a member is accepted in silence instead of refused as a duplicate (Buzz).
  package var acceptsRepeatedJoins = false
  /// Who loses a channel is told so by CLOSED; off, its subscriptions just fall silent.
  package var announcesRevokedAccess = true

  package static let ordinaryKindsNeedingGroup: Set<EventKind> = [
    9, 11, 40002, 40003, 20002, 9000, 9001, 9002, 9005, 9007, 9008, 9009, 9021, 9022,
  ]

  package init() {}
}

/// How much one client may do.
package struct LimitRules: Sendable, Hashable {
  package var frameBytesMax = 1 << 20
  package var subscriptionsMax = 200
  package var filtersMax = 20
  package var subscriptionIDBytesMax = 64
  /// NIP-77 sessions of one connection.
  package var reconciliationsMax = 8
  /// The `max_limit` told in NIP-11; nil tells the true page size.
  package var advertisedPageMax: Int?
  package var budget: RateBudget?

  package init() {}
}

/// Frames that one key may send in a sliding window, over all of its connections.
package struct RateBudget: Sendable, Hashable {
  package var framesMax: Int
  package var window: Duration
  package var form = Form.addressed
  package var wording = Wording.quotaExceeded

  package init(framesMax: Int, window: Duration, form: Form = .addressed) {
    self.framesMax = framesMax
    self.window = window
    self.form = form
  }

  package enum Form: Sendable, Hashable, CaseIterable {
    /// CLOSED for a REQ or COUNT, OK false for an EVENT.
    case addressed
    /// A NOTICE that names nothing.
    case notice
    /// A NOTICE for an EVENT, CLOSED for a REQ (older Buzz).
    case noticeForEvents
  }

  package enum Wording: Sendable, Hashable, CaseIterable {
    case quotaExceeded
    case admissionUnavailable
    case tooManyRequests
  }
}

/// What the relay says, when, and whether it is true.
package struct AnswerRules: Sendable, Hashable {
  package var toEvent = EventAnswer.prompt
  package var endOfStored = EndOfStored.prompt
  /// NIP-67 `finish`; `more` is sent with it.
  package var hints = true
  package var toBadRequest = BadRequestAnswer.closed
  package var wording = Wording.plain
  /// Lies told with every page of stored events.
  package var lies: Set<Lie> = []

  package init() {}

  package enum EventAnswer: Sendable, Hashable {
    case prompt
    /// Stored, and never answered.
    case never
    case late(Duration)
    /// Answered under an empty id.
    case emptyID
    /// Refused with these words, and not stored.
    case refused(Text)
    /// OK true, and yet not stored.
    case acceptedButDropped
  }

  package enum EndOfStored: Sendable, Hashable {
    case prompt
    case never
    case late(Duration)
    case twice
    /// Said before the stored events are sent.
    case early
  }

  package enum BadRequestAnswer: Sendable, Hashable {
    case closed
    /// A NOTICE that names no subscription (Buzz).
    case notice
    case silence
  }

  /// In which words the same refusals are said.
  package enum Wording: Sendable, Hashable, CaseIterable {
    case plain
    case buzz
  }

  package enum Lie: Sendable, Hashable, CaseIterable {
    /// An EVENT for a subscription that nobody opened.
    case foreignSubscription
    /// An event that matches no filter of its subscription.
    case unasked
    /// Content swapped under a valid id and signature.
    case swappedContent
    /// One event of a page comes with other content in place of its own.
    case tampered
    /// One event of a page comes with a date long before its own, and not with its own.
    case backdated
  }
}
