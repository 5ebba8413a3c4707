import Nostr

/// Which scopes one round walked at one relay, and of which it could not prove all.
struct RoundProof: Sendable, Hashable {
  var walked: Set<Text> = []
  var unproved: Set<Text> = []

  /// Whether every scope that was walked anywhere was proved at one relay at least: relays of one
  /// community are replicas, and what one of them lacks or refuses takes nothing from another.
  static func isComplete(_ proofs: [RoundProof]) -> Bool {
    let walked = proofs.reduce(into: Set<Text>()) { $0.formUnion($1.walked.union($1.unproved)) }
    return walked.allSatisfy { scope in
      proofs.contains { $0.walked.contains(scope) && !$0.unproved.contains(scope) }
    }
  }
}

extension SyncSummary {
  /// Adds what another relay's round brought.
  mutating func add(_ other: SyncSummary) {
    stored += other.stored
    duplicates += other.duplicates
    rejected.merge(other.rejected, uniquingKeysWith: +)
    gaps += other.gaps
    viaNegentropy += other.viaNegentropy
    viaPaging += other.viaPaging
  }
}

extension SyncProgress {
  mutating func add(_ other: SyncProgress) {
    stored += other.stored
    duplicates += other.duplicates
    received += other.received
    scopesDone += other.scopesDone
    scopesKnown += other.scopesKnown
    pages += other.pages
  }
}
