import Nostr

/// Text from others, made fit for a terminal.
///
/// Nothing that it returns can move the cursor, change colours or the title, forge a line, reorder
/// its neighbours or hide: such characters are shown as marks like `⟨U+202E⟩`.
enum SafeText {
  /// One line of at most `cells` cells; a line feed becomes a mark.
  static func line(_ text: some StringProtocol, cells: Int? = nil) -> String {
    var marked = ""
    mark(String(text), keepsLines: false, into: &marked)
    guard let cells else { return marked }
    return CellWidth.clamp(marked, to: cells)
  }

  static func line(_ text: Text, cells: Int? = nil) -> String { line(text.string, cells: cells) }

  /// A line of JSON that says the same, with escapes in the place of marks.
  static func json(_ text: String) -> String {
    var escaped = ""
    for character in text {
      mark(character, into: &escaped) { scalar in
        String(scalar).utf16.map { "\\u" + hex($0).lowercased() }.joined()
      }
    }
    return escaped
  }

  /// The lines of a message.
  static func lines(_ text: Text) -> [String] {
    var marked = ""
    mark(text.string, keepsLines: true, into: &marked)
    return marked.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  static let nameCells = 32

  /// A person's or a group's name: white space at its ends cut off, one line, clamped; nil where
  /// nothing is left to see.
  static func name(_ text: Text) -> String? {
    let words = line(text.string.prefix(400)).split(separator: " ").joined(separator: " ")
    return words.isEmpty ? nil : CellWidth.clamp(words, to: nameCells)
  }

  /// A reaction: two graphemes of it at most, or a `:code:`.
  static func reaction(_ text: Text) -> String {
    let string = text.string.prefix(400)
    if string.hasPrefix(":"), string.hasSuffix(":"), string.count > 2 {
      return line(string, cells: nameCells)
    }
    let shown = line(string.prefix(2), cells: 16)
    return string.count > 2 ? shown + "…" : shown
  }

  private static let tabCells = 4
  private static let marksMax = 8

  private static func mark(_ text: String, keepsLines: Bool, into result: inout String) {
    for character in text {
      if character == "\n" || character == "\r\n" {
        result += keepsLines ? "\n" : " "
      } else if character == "\t" {
        result += String(repeating: " ", count: keepsLines ? tabCells : 1)
      } else {
        mark(character, into: &result)
      }
    }
  }

  private static func mark(
    _ character: Character, into result: inout String,
    escape: ((Unicode.Scalar) -> String)? = nil
  ) {
    let scalars = Array(character.unicodeScalars)
    var combining = 0
    for (index, scalar) in scalars.enumerated() {
      if isCombining(scalar) {
        combining += 1
        // A tower of accents would paint over the lines above and below.
        if combining > marksMax {
          if let escape { result += escape(scalar) }
          continue
        }
      }
      let before = index > 0 ? scalars[index - 1] : nil
      let after = index + 1 < scalars.count ? scalars[index + 1] : nil
      if isHarmful(scalar) && !isAtHome(scalar, after: before, before: after, in: scalars) {
        result += escape?(scalar) ?? "⟨U+\(hex(scalar.value))⟩"
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
  }

  private static func isCombining(_ scalar: Unicode.Scalar) -> Bool {
    let category = scalar.properties.generalCategory
    return category == .nonspacingMark || category == .enclosingMark
  }

  /// Controls, separators, and everything that is drawn as nothing.
  private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.value >= 0x20 && scalar.value < 0x7f { return false }
    let properties = scalar.properties
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return true
    default:
      return properties.isDefaultIgnorableCodePoint || properties.isNoncharacterCodePoint
    }
  }

  /// The few places where an invisible character belongs: inside emoji, and between letters of
  /// scripts that join.
  private static func isAtHome(
    _ scalar: Unicode.Scalar, after before: Unicode.Scalar?, before after: Unicode.Scalar?,
    in cluster: [Unicode.Scalar]
  ) -> Bool {
    guard let before else { return false }
    switch scalar.value {
    case 0x200d:
      guard let after else { return false }
      let endsEmoji = isPictograph(before) || before.value == 0xfe0f || isSkinTone(before)
      return endsEmoji && isPictograph(after) || joins(before) && joins(after)
    case 0x200c: return joins(before)
    case 0xfe0e, 0xfe0f: return before.properties.isEmoji
    case 0xe0020...0xe007f: return cluster.first?.value == 0x1f3f4
    case 0xe0100...0xe01ef: return before.properties.isIdeographic
    default: return false
    }
  }

  private static func isPictograph(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isEmoji && scalar.value > 0xff
  }

  private static func isSkinTone(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isEmojiModifier
  }

  /// Arabic and Persian, and the scripts of India, use joiners to spell.
  private static func joins(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x0600...0x08ff, 0x0900...0x0dff, 0x1000...0x109f, 0x1780...0x17ff, 0x1800...0x18af:
      let category = scalar.properties.generalCategory
      return category != .format && category != .control
    default: return false
    }
  }

  private static func hex(_ value: some BinaryInteger) -> String {
    let digits = String(value, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}
