import Nostr
import SyncCore

/// Which scopes one round walked at one relay, and of which it could not prove all.
struct RoundProof: Sendable, Hashable {
  var walked: Set<Scope> = []
  var unproved: Set<Scope> = []

  private var proved: Set<Scope> { walked.subtracting(unproved) }

  /// Whether every scope that was walked anywhere was proved at one relay at least, by itself or in
  /// a wider one: relays of one community are replicas, and what one of them lacks or refuses takes
  /// nothing from another.
  static func isComplete(_ proofs: [RoundProof]) -> Bool {
    let proved = proofs.reduce(into: Set<Scope>()) { $0.formUnion($1.proved) }
    let wanted = proofs.reduce(into: Set<Scope>()) { $0.formUnion($1.walked.union($1.unproved)) }
    return wanted.subtracting(proved).allSatisfy { scope in
      proved.contains { $0.contains(scope) }
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
    rejected.merge(other.rejected, uniquingKeysWith: +)
    viaNegentropy += other.viaNegentropy
    viaPaging += other.viaPaging
    scopesDone += other.scopesDone
    scopesKnown += other.scopesKnown
    pages += other.pages
  }
}
