/// How many cells of a terminal text takes, counted by grapheme.
enum CellWidth {
  static func of(_ text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + of($1) }
  }

  static func of(_ character: Character) -> Int {
    let scalars = character.unicodeScalars
    guard let first = scalars.first else { return 0 }
    if first.value < 0x20 || (0x7f..<0xa0).contains(first.value) { return 0 }
    if first.value < 0x300 && scalars.count == 1 { return 1 }
    if isEmoji(scalars, first) || isWide(first) { return 2 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return 1
    }
  }

  /// At most `cells` cells of it, the last an ellipsis where something was cut.
  static func clamp(_ text: String, to cells: Int) -> String {
    var width = 0
    var kept = ""
    var beforeEllipsis = ""
    for character in text {
      let next = width + of(character)
      guard next <= cells else { return beforeEllipsis + "…" }
      kept.append(character)
      width = next
      if width < cells { beforeEllipsis = kept }
    }
    return kept
  }

  /// The beginning of a text that fits into `cells`: up to its last space where there is one, and one
  /// character at least.
  static func piece(of text: Substring, cells: Int) -> Substring {
    var width = 0
    var end = text.startIndex
    var space: String.Index?
    while end < text.endIndex {
      width += of(text[end])
      if width > cells, end > text.startIndex { return text[..<(space ?? end)] }
      if text[end] == " ", end > text.startIndex { space = end }
      end = text.index(after: end)
    }
    return text
  }

  /// The text followed by as many spaces as `cells` asks for.
  static func padded(_ text: String, to cells: Int) -> String {
    text + String(repeating: " ", count: max(0, cells - of(text)))
  }

  private static func isEmoji(_ scalars: String.UnicodeScalarView, _ first: Unicode.Scalar) -> Bool
  {
    // Two regional indicators are one flag.
    if (0x1f1e6...0x1f1ff).contains(first.value) { return scalars.count > 1 }
    if first.properties.isEmojiPresentation {
      return !scalars.dropFirst().contains { $0.value == 0xfe0e }
    }
    return first.properties.isEmoji && scalars.contains { $0.value == 0xfe0f }
  }

  /// East Asian wide and full width.
  private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
    let value = scalar.value
    guard value >= 0x1100 else { return false }
    var low = 0
    var high = wide.count
    while low < high {
      let middle = (low + high) / 2
      if wide[middle].upperBound < value { low = middle + 1 } else { high = middle }
    }
    return low < wide.count && wide[low].contains(value)
  }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x2e80...0x2e99, 0x2e9b...0x2ef3, 0x2f00...0x2fd5, 0x2ff0...0x303e,
    0x3041...0x3096, 0x3099...0x30ff, 0x3105...0x312f, 0x3131...0x318e, 0x3190...0x31e3,
    0x31ef...0x321e, 0x3220...0x3247, 0x3250...0x4dbf, 0x4e00...0xa48c, 0xa490...0xa4c6,
    0xa960...0xa97c, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe52,
    0xfe54...0xfe66, 0xfe68...0xfe6b, 0xff01...0xff60, 0xffe0...0xffe6, 0x16fe0...0x16fe4,
    0x16ff0...0x16ff1, 0x17000...0x187f7, 0x18800...0x18cd5, 0x18d00...0x18d08,
    0x1aff0...0x1b2fb, 0x1f200...0x1f202, 0x1f210...0x1f23b, 0x1f240...0x1f248,
    0x1f250...0x1f251, 0x1f260...0x1f265, 0x20000...0x2fffd, 0x30000...0x3fffd,
  ]
}
