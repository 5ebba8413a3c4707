import SyncEngine

extension RelayStatus {
  /// What to tell of clocks that differ; nil where they do not.
  var skewWords: String? {
    guard isSkewed, let seconds = clockSkew else { return nil }
    let side = seconds > 0 ? "behind" : "ahead of"
    return "this machine's clock is \(abs(seconds)) s \(side) the relay's"
  }
}
