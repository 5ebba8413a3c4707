package import Migrations
public import Nostr
public import SyncCore

/// The bounds and the surroundings of a log.
public struct LogOptions: Sendable {
  /// How long a statement waits for a lock that another process holds.
  public var busyMilliseconds: Int32 = 10_000
  /// The most rejects whose ids are kept; the counts are not bounded by it.
  public var rejectsMax = 10_000
  /// The most entries that are kept in memory for those who follow the log.
  public var tailEntriesMax = 16_384
  /// The most bytes of events that are kept in memory for those who follow the log.
  public var tailBytesMax = 24 << 20
  /// The most bytes of events that one answer of `LogReader.entries` carries, beside its first.
  public var readBytesMax = 16 << 20
  /// The page cache of the writer.
  public var cacheKibibytes = 16_384
  /// The most pages the file may have; nil: as many as the disk holds.
  public var pagesMax: Int?
  /// Whether a file that was not left in order by this program is checked before anything is
  /// written to it.
  public var isChecked = false
  /// A file up to this size is checked when it is opened; a larger one behind the first write.
  public var checkedAtOnceBytesMax = 64 << 20
  /// How long a check holds for a file that was left in order, in seconds: disks lose bits.
  public var checkHoldsSeconds: Int64 = 30 * 86_400
  /// Whether a log that is not there is read as one without an entry, as one is whose maker was
  /// killed before there was a file.
  public var isMissingEmpty = false
  /// The name of the SQLite VFS to use; nil: the system's.
  public var vfs: String?
  /// The 16 bytes that name a new log; nil: drawn by SQLite.
  public var logID: [UInt8]?
  /// The schema's steps; tests bring later ones.
  package var migrations = Migrations.all

  public init() {}
}

/// How much is in a log.
public struct LogCounts: Sendable, Hashable {
  public let events: Int
  public let facts: Int
  /// The size on disk, with what is not yet folded into the main file.
  public let bytes: Int
  /// By relay and reason, sorted.
  public let rejects: [RejectCount]
  /// What relays sent that they should not have, by relay and reason, sorted.
  public let faults: [FaultCount]

  /// How many were refused for `reason`, from wherever.
  public func rejects(for reason: String) -> Int {
    rejects.reduce(0) { $1.reason == reason ? $0 + $1.count : $0 }
  }
}

/// How often something from one relay was refused for one reason.
public struct RejectCount: Sendable, Hashable {
  /// Nil: from a file.
  public let relay: RelayURL?
  public let reason: String
  public let count: Int
}

/// How often one relay did one thing wrong, beside events that were refused.
public struct FaultCount: Sendable, Hashable {
  public let relay: RelayURL
  public let reason: String
  public let count: Int
  public let lastAt: Timestamp
}

/// One refused event or line, as it was noted.
public struct LoggedReject: Sendable, Hashable {
  public let relay: RelayURL?
  public let reject: Reject
  public let rejectedAt: Timestamp
}

/// All that is proved about one scope at one relay.
public struct LoggedCoverage: Sendable, Hashable {
  public let relay: RelayURL
  /// The canonical JSON of the scope's filter.
  public let scope: Text
  public let intervals: [CoverageInterval]
}
