import Nostr
import Testing

@testable import skep_cli

@Suite struct SafeTextTests {
  @Test(arguments: [
    "\u{1b}]52;c;aGk=\u{7}", "\u{1b}[2J", "\u{9b}2J", "\u{1b}]0;title", "a\rb", "\u{0}",
    "\u{7f}", "\u{85}x", "\u{8}\u{8}forged",
  ])
  func `no control character reaches the terminal`(text: String) {
    let shown = SafeText.lines(Text(text)).joined(separator: "\n") + SafeText.line(text)
    let bad = shown.unicodeScalars.filter {
      $0 != "\n" && ($0.value < 0x20 || (0x7f..<0xa0).contains($0.value))
    }
    #expect(bad.isEmpty)
    #expect(shown.contains("⟨U+"))
  }

  @Test(arguments: [
    ("\u{202e}gpj.exe", "⟨U+202E⟩gpj.exe"), ("a\u{2066}b\u{2069}", "a⟨U+2066⟩b⟨U+2069⟩"),
    ("ad\u{200b}min", "ad⟨U+200B⟩min"), ("a\u{200d}b", "a⟨U+200D⟩b"),
    ("x\u{feff}", "x⟨U+FEFF⟩"), ("a\u{2028}b", "a⟨U+2028⟩b"), ("a\u{ad}b", "a⟨U+00AD⟩b"),
    ("\u{3164}", "⟨U+3164⟩"), ("a\u{e0041}", "a⟨U+E0041⟩"), ("a\u{fe0f}", "a⟨U+FE0F⟩"),
  ])
  func `what reorders or hides is shown as a mark`(text: String, shown: String) {
    #expect(SafeText.line(text) == shown)
  }

  @Test(arguments: [
    "👨‍👩‍👧‍👦", "👩🏽‍💻", "❤️", "🏳️‍🌈", "1️⃣", "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "می\u{200c}خواهم", "क्\u{200d}ष", "Zoë", "日本語", "한국어", "שלום", "e\u{301}",
  ])
  func `emoji and honest scripts are left as they are`(text: String) {
    #expect(SafeText.line(text) == text)
  }

  @Test func `a line feed is a line and a tab is spaces`() {
    #expect(SafeText.lines("a\tb\r\nc\n") == ["a    b", "c", ""])
    #expect(SafeText.line("a\nb") == "a b")
  }

  @Test func `a name is one line, clamped, and nothing is no name`() {
    #expect(SafeText.name(Text(String(repeating: "x", count: 200)))?.count == SafeText.nameCells)
    #expect(SafeText.name("  Ada\n Lovelace ") == "Ada Lovelace")
    #expect(SafeText.name(" \t\n") == nil)
  }

  @Test func `a reaction is two graphemes at most`() {
    #expect(SafeText.reaction(Text(String(repeating: "no ", count: 160))) == "no…")
    #expect(SafeText.reaction("👨‍👩‍👧‍👦") == "👨‍👩‍👧‍👦")
    #expect(SafeText.reaction(":party:") == ":party:")
  }

  @Test func `a tower of accents is cut`() {
    let tower = "a" + String(repeating: "\u{301}", count: 300)
    #expect(SafeText.line(tower).unicodeScalars.count < 12)
  }

  @Test(arguments: [
    ("a", 1), ("日", 2), ("e\u{301}", 1), ("👨‍👩‍👧‍👦", 2), ("🇩🇪", 2), ("1️⃣", 2), ("각", 2), ("각", 2),
    ("❤", 1), ("❤️", 2), ("ｱ", 1), ("Ａ", 2), ("👍🏽", 2),
  ])
  func `width is counted by grapheme`(text: String, cells: Int) {
    #expect(CellWidth.of(text) == cells)
  }

  @Test func `clamping never cuts a grapheme or exceeds the width`() {
    #expect(CellWidth.clamp("日本語", to: 5) == "日本…")
    #expect(CellWidth.clamp("日本語", to: 4) == "日…")
    #expect(CellWidth.clamp("日本語", to: 6) == "日本語")
    #expect(CellWidth.of(CellWidth.clamp("👨‍👩‍👧‍👦👨‍👩‍👧‍👦", to: 3)) <= 3)
  }

  @Test func `rows of JSON keep the exact text`() {
    let row = JSON.object([
      ("text", .text("a\u{1b}[2J\"\\\n\u{202e}é")), ("n", nil), ("x", .double(0.25)),
    ])
    let expected = #"{"text":"a\u001b[2J\"\\\n"# + "\u{202e}é" + #"","n":null,"x":0.25}"# + "\n"
    #expect(String(decoding: row.line, as: UTF8.self) == expected)
  }
}
