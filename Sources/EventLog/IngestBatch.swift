public import Nostr
public import NostrCrypto
public import SyncCore

/// What enters the log in one transaction: events, what was refused beside them, and what their
/// arrival proved.
public struct IngestBatch: Sendable {
  public var events: [VerifiedEvent]
  public var rejected: [Reject]
  /// The relay that served all of this; nil: a file.
  public var source: RelayURL?
  public var receivedAt: Timestamp
  public var proofs: [CoverageProof]
  public var gaps: [CoverageGap]

  public init(
    events: [VerifiedEvent] = [], rejected: [Reject] = [], source: RelayURL? = nil,
    receivedAt: Timestamp, proofs: [CoverageProof] = [], gaps: [CoverageGap] = []
  ) {
    self.events = events
    self.rejected = rejected
    self.source = source
    self.receivedAt = receivedAt
    self.proofs = proofs
    self.gaps = gaps
  }
}

/// Something that was refused at the door, and why.
public struct Reject: Sendable, Hashable {
  /// The id it claims, where one could be read.
  public let id: Text?
  /// The short reason that is counted, such as `signature`.
  public let reason: String
  public let detail: Text?
  /// The line of the file it came from.
  public let line: Int?

  public init(id: Text? = nil, reason: String, detail: Text? = nil, line: Int? = nil) {
    self.id = id
    self.reason = reason
    self.detail = detail
    self.line = line
  }
}

/// What became of one event offered to the log.
public enum Admission: Sendable, Hashable {
  case appended(LogSequence)
  /// The log has it already; that another relay has it too was noted.
  case duplicate
  /// Handed on in the result, and not stored.
  case ephemeral
}

/// What became of a batch.
public struct IngestResult: Sendable {
  /// In the order of the batch's events.
  public let admissions: [Admission]
  /// The last sequence of the log after the batch.
  public let head: LogSequence
  public let appended: Int
  public let duplicates: Int
  public let ephemeral: [VerifiedEvent]

  public init(
    admissions: [Admission], head: LogSequence, appended: Int, duplicates: Int,
    ephemeral: [VerifiedEvent]
  ) {
    self.admissions = admissions
    self.head = head
    self.appended = appended
    self.duplicates = duplicates
    self.ephemeral = ephemeral
  }
}
