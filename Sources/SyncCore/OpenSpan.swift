public import Nostr

/// A span of time of which nobody can say that all of it is here.
public struct OpenSpan: Hashable, Sendable {
  /// Nil where there is no relay that could be asked.
  public let relay: RelayURL?
  public let scope: Scope
  public let from: Timestamp
  public let to: Timestamp
  /// A sentence for people.
  public let why: Text

  public init(relay: RelayURL?, scope: Scope, from: Timestamp, to: Timestamp, why: Text) {
    self.relay = relay
    self.scope = scope
    self.from = from
    self.to = to
    self.why = why
  }

  public init(_ gap: CoverageGap) {
    self.init(relay: gap.relay, scope: gap.scope, from: gap.from, to: gap.to, why: gap.why)
  }
}
