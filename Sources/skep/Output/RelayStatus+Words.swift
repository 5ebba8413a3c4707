import SyncEngine

extension RelayStatus {
  /// What to tell of clocks that differ; nil where they do not.
  var skewWords: String? {
    guard let clockSkew, isSkewed else { return nil }
    return Self.skewWords(clockSkew)
  }

  /// - Parameter seconds: By how many the relay's clock is ahead of this machine's.
  static func skewWords(_ seconds: Int64) -> String {
    let side = seconds > 0 ? "behind" : "ahead of"
    return "this machine's clock is \(seconds.magnitude) s \(side) the relay's"
  }
}
