import Nostr

/// How a text becomes the words by which it is found.
///
/// SQLite's tokenizer cuts at what is neither letter, mark nor number, and folds case and accents.
/// Scripts that put no spaces between words would come out as one long word; of these every pair
/// of neighbours becomes a word, and the last letter of a run one of its own, so that a part of any
/// length is found, a single letter too.
enum SearchText {
  /// Of a longer text the beginning is found.
  static let bytesMax = 256 << 10

  /// The text to hand to the tokenizer.
  static func indexed(_ text: Text) -> ArraySlice<UInt8> {
    let cut = Self.cut(text.utf8)
    // No script without spaces begins before U+0E00, whose letters begin with this byte.
    guard cut.contains(where: { $0 >= 0xe0 }) else { return cut }
    var result: [UInt8] = []
    result.reserveCapacity(cut.count * 3)
    for run in runs(of: cut) {
      guard run.isSpaceless else {
        result.append(contentsOf: String(run.scalars).utf8)
        continue
      }
      for word in pairs(run.scalars) + [String(run.scalars.suffix(1))] {
        result.append(UInt8(ascii: " "))
        result.append(contentsOf: word.utf8)
      }
      result.append(UInt8(ascii: " "))
    }
    return result[...]
  }

  /// The expression of FTS5 that finds a text with all these words, each of them a word's beginning;
  /// nil: there is nothing to look for.
  ///
  /// What stands between quotes is one phrase of whole words.
  static func expression(_ words: Text) -> String? {
    var terms: [String] = []
    for (index, piece) in words.string.split(
      separator: "\"", omittingEmptySubsequences: false
    ).enumerated() {
      if index % 2 == 1 {
        terms += term(of: piece.unicodeScalars, isPrefix: false)
      } else {
        for word in piece.split(whereSeparator: \.isWhitespace) {
          terms += term(of: word.unicodeScalars, isPrefix: true)
        }
      }
    }
    return terms.isEmpty ? nil : terms.map { "text : " + $0 }.joined(separator: " AND ")
  }

  private static func term(
    of scalars: Substring.UnicodeScalarView, isPrefix: Bool
  ) -> [String] {
    runs(of: Array(String(scalars).utf8)[...]).compactMap { run in
      guard run.scalars.contains(where: isWord) else { return nil }
      guard run.isSpaceless else { return quoted(String(run.scalars)) + (isPrefix ? " *" : "") }
      let pairs = pairs(run.scalars)
      return pairs.isEmpty
        ? quoted(String(run.scalars)) + " *" : quoted(pairs.joined(separator: " "))
    }
  }

  private static func quoted(_ words: String) -> String {
    "\"" + words.filter { $0 != "\"" && $0 != "\0" } + "\""
  }

  /// What the tokenizer takes for a part of a word.
  private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
      .decimalNumber, .letterNumber, .otherNumber, .privateUse:
      true
    default: false
    }
  }

  private static func pairs(_ scalars: String.UnicodeScalarView) -> [String] {
    zip(scalars, scalars.dropFirst()).map { first, second in
      var word = String.UnicodeScalarView()
      word.append(first)
      word.append(second)
      return String(word)
    }
  }

  private struct Run {
    var scalars: String.UnicodeScalarView
    let isSpaceless: Bool
  }

  private static func runs(of utf8: ArraySlice<UInt8>) -> [Run] {
    var result: [Run] = []
    for scalar in String(decoding: utf8, as: UTF8.self).unicodeScalars {
      let isSpaceless = isSpaceless(scalar)
      if result.last?.isSpaceless == isSpaceless {
        result[result.count - 1].scalars.append(scalar)
      } else {
        var scalars = String.UnicodeScalarView()
        scalars.append(scalar)
        result.append(Run(scalars: scalars, isSpaceless: isSpaceless))
      }
    }
    return result
  }

  /// Letters of scripts that put no spaces between words, or hang endings onto them.
  private static func isSpaceless(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.value >= 0xe00 else { return false }
    switch scalar.value {
    // Thai, Lao, Tibetan, Myanmar, Hangul, Khmer; Japanese, Chinese, Korean.
    case 0xe00...0xfff, 0x1000...0x109f, 0x1100...0x11ff, 0x1780...0x17ff, 0x3041...0x30ff,
      0x3105...0x318f, 0x31a0...0x31ff, 0x3400...0x4dbf, 0x4e00...0x9fff, 0xac00...0xd7ff,
      0xf900...0xfaff, 0xff66...0xffdc, 0x20000...0x3ffff:
      return isWord(scalar) || scalar.properties.generalCategory == .nonspacingMark
        || scalar.properties.generalCategory == .spacingMark
    default: return false
    }
  }

  /// The beginning of a text, not within a letter.
  private static func cut(_ utf8: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard utf8.count > bytesMax else { return utf8 }
    var end = utf8.startIndex + bytesMax
    while end > utf8.startIndex, utf8[end] & 0xc0 == 0x80 { end -= 1 }
    return utf8[..<end]
  }
}
