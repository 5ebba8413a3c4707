/// Every bound of the synchronisation in one place: each queue, buffer, retry and wait has one, and
/// a named outcome when it is met.
public struct Limits: Sendable, Hashable {
  // Connections.
  public var connectMax: Duration = .seconds(20)
  /// How long a relay that never challenges is waited for before asking without AUTH.
  public var challengeGrace: Duration = .seconds(2)
  /// How long a signer may take.
  public var signMax: Duration = .seconds(30)
  /// How long an AUTH may stay unanswered before it is simply tried: some relays never answer it.
  public var authAnswerGrace: Duration = .seconds(2)
  /// Refusals of AUTH in a row after which only the user can go on.
  public var authRefusalsMax = 5
  /// A difference of the clocks, in seconds, that is told, and that an AUTH is corrected by once
  /// the relay has refused one.
  public var authSkewMax: Int64 = 30
  /// How long the relay's clock is waited for before an AUTH is tried again.
  public var clockPatience: Duration = .seconds(2)
  /// Challenges answered on one connection without a pause, and how soon each of them may be
  /// followed by another then.
  public var authSignaturesMax = 16
  public var authSignatureInterval: Duration = .seconds(60)
  /// How long a request waits for a relay that cannot be reached.
  public var unreachedMax: Duration = .seconds(30)
  /// Silence after which the relay is pinged, and the wait for any answer to that.
  public var quietMax: Duration = .seconds(30)
  public var pongMax: Duration = .seconds(10)
  /// Wakes closer together than this count as one.
  public var resumeSpacing: Duration = .seconds(5)
  /// How often lost tasks and a sleep of the machine are looked for.
  public var watchInterval: Duration = .seconds(1)
  /// Closed subscriptions whose late frames are not taken for lies.
  public var closedRemembered = 512
  /// How often what a relay did wrong is written down at most.
  public var faultInterval: Duration = .seconds(10)

  // Requests.
  /// How long a new connection is used at the pace of the most frugal relays, so that what the user
  /// writes meanwhile finds room. Where nothing is ever written there is nothing to wait for.
  public var budgetPatience: Duration = .seconds(1)
  /// Re-armed by each event of the request itself, so that a page that streams is never cut.
  public var answerIdleMax: Duration = .seconds(15)
  /// After a NOTICE that may have been the answer to a request that heard nothing else.
  public var noticeGrace: Duration = .seconds(2)
  public var askAttemptsMax = 4
  public var liveAttemptsMax = 3
  public var asksPendingMax = 256
  public var publishMax: Duration = .seconds(20)
  public var publishesInFlightMax = 8
  /// Requests that stay open at once without a word of the relay about its own limit.
  public var subscriptionsMax = 150
  /// Of those, the ones kept free for one-shot requests.
  public var subscriptionsReserve = 8
  public var asksOpenMax = 4
  /// How often feeds without a place take the places of others.
  public var rotationInterval: Duration = .seconds(30)

  // Pages.
  public var pageLimit = 500
  public var liveLimit = 20
  public var keysetPagesMax = 1000
  public var walkRetriesMax = 3
  /// How often a page is asked for again because events arrived while it was read.
  public var walkLooksMax = 8
  /// Events of a page kept in memory before they are handed on.
  public var chunkEventsMax = 1000
  /// Events verified at once while a page streams in.
  public var verifyBatch = 128
  /// So many batches of a page may wait for their verdicts before no more is read.
  public var verifyBatchesMax = 4
  public var liveBatch = 50
  public var liveFlushDelay: Duration = .milliseconds(16)
  public var frameBytesMax = 16 << 20
  /// Frames taken from a socket at once, where so many have arrived.
  public var framesAtOnce = 64
  /// How far ahead of our clock a date may be and still move a cursor.
  public var skewMax: Int64 = 900

  // Reconciliation.
  public var walksMax = 3
  /// How soon a round comes again that left something unanswered.
  public var unsettledInterval: Duration = .seconds(60)
  /// Walks in a row without an answer after which the others of the round are not asked.
  public var unansweredWalksMax = 3
  /// The same for walks that ended with a NOTICE, at a relay that does answer others.
  public var noticedWalksMax = 8
  /// The same for walks that lost every connection.
  public var lostWalksMax = 2
  public var recentWindow: Int64 = 7 * 86_400
  /// Ids of events by which a round knows what it has been served before.
  public var secondLooksRemembered = 32_768
  /// Connections in a row that may end before an answer is whole, until its walk is given up.
  public var walkDisconnectsMax = 5
  /// How far the cache may fall behind before ingest waits for it.
  public var cacheLag: Int64 = 12_000
  /// What is proved again at a reconnection, below the newest proof.
  public var resumeOverlap: Int64 = 3600
  public var reconcileInterval: Duration = .seconds(600)
  /// The same for a relay whose feeds were found deaf.
  public var deafInterval: Duration = .seconds(60)
  public var profilesPerRequest = 50
  public var profilesMax = 20_000
  public var groupsMax = 10_000

  // Reconciliation by NIP-77.
  /// How long a relay may take to say at all that it knows NIP-77.
  public var negotiationProbeMax: Duration = .seconds(5)
  /// How long it may take over its first message: it has a set to collect.
  public var negotiationOpenMax: Duration = .seconds(30)
  public var negotiationsOpenMax = 3
  public var negotiationRoundsMax = 2000
  /// After a relay was found not to do it.
  public var negotiationRetryAfter: Duration = .seconds(3600)
  /// Items of the local copy compared at once; more are compared in windows.
  public var reconcileItemsMax = 500_000
  /// Ids found missing in one session; the rest is found by another.
  public var reconcileMissingMax = 250_000
  /// Openings refused in a row for their size before the rest is paged.
  public var reconcileRefusalsMax = 64
  public var reconcileAttemptsMax = 3
  public var idsPerRequest = 500
  public var idRequestsAtOnce = 4

  // Windows of a channel (NIP-CW).
  /// Rows asked for at once: the most that relays are known to give.
  public var windowRowsMax = 200
  public var windowPagesMax = 5000
  /// Events in one answer: the rows and what changes them.
  public var windowEventsMax = 5000
  /// After a relay was found not to serve them.
  public var windowRetryAfter: Duration = .seconds(3600)

  // Outgoing messages.
  public var errorAttemptsMax = 6
  public var unknownPrefixAttemptsMax = 3
  public var outboxRetryMax: Duration = .seconds(300)
  /// How long a one-shot run waits for the outbox while no message comes to its end.
  public var settlePatience: Duration = .seconds(35)
  public var outboxMax = 10_000
  /// The most slots of which the date of the version written last is remembered.
  public var versionDatesMax = 256
  /// How far ahead of the clock something written here may be dated so that it comes after what it
  /// follows, in seconds.
  public var datingLeadMax: Int64 = 300
  /// How many events of its group a message names to show what its author had seen (NIP-29), and among
  /// how many of the newest.
  public var referencesWanted = 3
  public var referencesSpan = 50

  // The store.
  /// How long nothing is written before the write-ahead log is folded into the log's main file,
  /// and the longest wait until that is tried again where a reader was in the way.
  public var checkpointIdle: Duration = .seconds(5)
  public var checkpointWaitMax: Duration = .seconds(60)
  /// The first and the longest wait until a cache that moved into memory tries its files again.
  public var cacheRetry: Duration = .seconds(30)
  public var cacheRetryMax: Duration = .seconds(3600)

  public var changesMax = 64

  public init() {}

  /// Shortens what is waited for without need where somebody gives up after `patience`: a relay that
  /// never challenges, and passes over what it does not know, must be asked, and answer, before that.
  public mutating func fit(into patience: Duration) {
    challengeGrace = min(challengeGrace, patience / 4)
    negotiationProbeMax = min(negotiationProbeMax, patience / 4)
  }
}
