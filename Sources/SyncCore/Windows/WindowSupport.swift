/// Whether a relay was found to serve windows of its channels (NIP-CW).
///
/// One channel without a window may be one that is not shown to us; a relay that never gave one does
/// not do it, and is asked again after a long time only.
public enum WindowSupport: Sendable, Hashable {
  case unknown
  case served(projectsReplies: Bool)
  case refused(at: Duration)

  /// Takes how a run ended.
  ///
  /// - Parameter projectsReplies: What the windows of the run showed; nil where none came.
  public mutating func learn(
    _ end: ChannelWindowMachine.End, projectsReplies: Bool?, at now: Duration
  ) {
    switch end {
    case .refused: self = .refused(at: now)
    case .unusable where projectsReplies == nil:
      if case .served = self { return }
      // Also where the last time is long ago: else it would be asked again and again from then on.
      self = .refused(at: now)
    case .unusable, .reached, .isTopLevelOnly, .tooMany, .cancelled:
      if let projectsReplies { self = .served(projectsReplies: projectsReplies) }
    }
  }

  /// Whether it is not to be asked now.
  public func isRefused(at now: Duration, _ limits: Limits) -> Bool {
    if case .refused(let at) = self { now < at + limits.windowRetryAfter } else { false }
  }
}
