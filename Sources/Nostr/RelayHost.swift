/// What may stand where an address names a machine: a name of the DNS, or an IP address.
///
/// Anything else is refused before it can become the name of a folder or be looked up.
enum RelayHost {
  /// Labels of letters, digits, hyphens and, as they are in use, underscores; a dot may end the name.
  /// One whose last label is a number is an IPv4 address, or nothing.
  static func isNameOrFour(_ host: ArraySlice<UInt8>) -> Bool {
    var labels = host.split(separator: dot, omittingEmptySubsequences: false)
    if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
    guard let last = labels.last, !last.isEmpty else { return false }
    if last.allSatisfy(isDigit) { return isFour(host) }
    return labels.allSatisfy(isLabel)
  }

  private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
    (1...63).contains(label.count) && label.first != hyphen && label.last != hyphen
      && label.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, hyphen, 0x5f: true
        default: false
        }
      }
  }

  /// Four numbers up to 255, without leading zeros, which some read as octal.
  static func isFour(_ host: ArraySlice<UInt8>) -> Bool {
    let parts = host.split(separator: dot, omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { part in
        guard (1...3).contains(part.count), part.allSatisfy(isDigit) else { return false }
        return (part.count == 1 || part.first != 0x30)
          && part.reduce(0) { $0 * 10 + Int($1) - 0x30 } <= 255
      }
  }

  /// Eight groups of up to four hex digits; once, `::` may stand for groups of zero, and the last
  /// two may be an IPv4 address.
  static func isSix(_ host: ArraySlice<UInt8>) -> Bool {
    let text = Array(host)
    let gap = text.indices.dropLast().first { text[$0] == colon && text[$0 + 1] == colon }
    guard let gap else { return groups(text[...], isTail: true) == 8 }
    let head = text[..<gap]
    let tail = text[(gap + 2)...]
    guard let before = head.isEmpty ? 0 : groups(head, isTail: false),
      let after = tail.isEmpty ? 0 : groups(tail, isTail: true)
    else { return false }
    return before + after < 8
  }

  /// How many groups stand between colons; nil where something else does.
  private static func groups(_ text: ArraySlice<UInt8>, isTail: Bool) -> Int? {
    var parts = text.split(separator: colon, omittingEmptySubsequences: false)
    var count = 0
    if isTail, let last = parts.last, last.contains(dot) {
      guard isFour(last) else { return nil }
      parts.removeLast()
      count = 2
    }
    guard parts.allSatisfy({ (1...4).contains($0.count) && $0.allSatisfy(isHex) }) else {
      return nil
    }
    return count + parts.count
  }

  private static let dot: UInt8 = 0x2e
  private static let hyphen: UInt8 = 0x2d
  private static let colon: UInt8 = 0x3a

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  private static func isHex(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
  }
}
