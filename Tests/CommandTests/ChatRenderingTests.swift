@testable import HotCache
import Nostr
import SyncCore
import Testing

@testable import skep_cli

@Suite struct ChatRenderingTests {
  private let rendering = ChatRendering(zone: { _ in 0 }, columns: 80, hasStyle: false)

  private func id(_ number: UInt8) throws -> EventID {
    EventID(try #require(Bytes32([UInt8](repeating: number, count: 32))))
  }

  private func shown(
    _ number: UInt8, _ text: Text, at time: Int64, name: Text? = "Ada", isMine: Bool = false,
    state: DeliveryState? = nil, reason: Text? = nil, reactions: [ReactionRow] = []
  ) throws -> ShownMessage {
    let key = PublicKey(try #require(Bytes32([UInt8](repeating: 9, count: 32))))
    let row = MessageRow(
      sequence: LogSequence(Int64(number)), id: try id(number), group: "g", author: key,
      createdAt: Timestamp(time), kind: .message, text: text, title: nil, isDeleted: false,
      isEdited: false, replyTo: nil, root: nil, isBroadcast: false, isStray: false,
      isPinned: false, replies: 0, lastReplyAt: nil,
      reactions: reactions, redatedFrom: nil, isFuture: false)
    let relay = try #require(RelayURL("ws://relay.example:1"))
    let delivery = try state.map {
      Delivery(
        message: MessageID(1), eventID: try id(number), relay: relay, group: "g", state: $0,
        attempts: 0, reason: reason, nextAttemptAt: nil, handedAt: nil, waitsFor: nil)
    }
    return ShownMessage(
      number: Int(number), row: row, authorName: name, isMine: isMine, delivery: delivery,
      repliesTo: nil)
  }

  @Test func `each day begins with its own line`() throws {
    let lines = rendering.page([
      try shown(1, "a", at: 1_700_000_000), try shown(2, "b", at: 1_700_000_060),
      try shown(3, "c", at: 1_700_086_400),
    ])
    let days = lines.indices.filter { lines[$0].hasPrefix("── 2023-") }
    #expect(days == [0, 3])
  }

  @Test func `a gap has a line where it lies`() throws {
    let relay = try #require(RelayURL("ws://relay.example:1"))
    let gap = CoverageGap(
      relay: relay, scope: Scope(.group("g")), from: 1_700_000_010, to: 1_700_000_050,
      why: "no answer")
    let lines = rendering.page(
      [try shown(1, "a", at: 1_700_000_000), try shown(2, "b", at: 1_700_000_060)],
      gaps: [OpenSpan(gap)])
    let place = try #require(lines.firstIndex { $0.contains("not proved complete") })
    #expect(lines[place - 1].hasSuffix("a"))
    #expect(lines[place + 1].hasSuffix("b"))
  }

  @Test(arguments: [
    (DeliveryState.queued, "waits to be sent"), (.sending, "being sent"), (.refused, "refused"),
    (.expired, "too old"), (.held, "held"), (.unknown, "no answer yet"),
  ])
  func `a message of one's own says how far it has come`(state: DeliveryState, mark: String) throws
  {
    let lines = rendering.message(try shown(1, "a", at: 0, isMine: true, state: state))
    #expect(lines.joined().contains(mark))
  }

  @Test func `what was sent bears a mark, and what others wrote does not`() throws {
    #expect(rendering.message(try shown(1, "a", at: 0, isMine: true)).joined().contains("✓"))
    #expect(!rendering.message(try shown(1, "a", at: 0)).joined().contains("✓"))
  }

  @Test func `a name, a text, a reason and a reaction cannot leave their line`() throws {
    let evil: Text = "\u{1b}[2J\u{202e}x\r\u{9b}H"
    let message = try shown(
      1, evil, at: 0, name: evil, isMine: true, state: .refused, reason: evil,
      reactions: [ReactionRow(emoji: evil, image: nil, count: 1, isMine: false)])
    let lines = rendering.message(message)
    #expect(lines.count == 1)
    let bad = lines.joined().unicodeScalars.filter {
      $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) || $0.value == 0x202e
    }
    #expect(bad.isEmpty)
  }

  @Test func `a forged second line stays indented under its author`() throws {
    let lines = rendering.message(try shown(1, "a\n16:30 #9    Boss  pay", at: 0))
    #expect(lines.count == 2)
    #expect(lines[1].hasPrefix("            16:30"))
  }

  @Test(arguments: [40, 80])
  func `a long line is broken at the terminal's edge, under its author`(columns: Int) throws {
    let text = Text(String(repeating: "word ", count: 60) + String(repeating: "語", count: 60))
    var narrow = ChatRendering(zone: { _ in 0 }, columns: columns, hasStyle: false)
    #expect(narrow.message(try shown(1, text, at: 0)).count == 1)
    narrow.isWrapping = true
    let lines = narrow.message(try shown(1, text, at: 0))
    #expect(lines.count > 4)
    #expect(lines.allSatisfy { CellWidth.of($0) <= columns })
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("            ") })
    let body = lines.enumerated().map {
      $0 == 0 ? String($1.dropFirst(25)) : String($1.dropFirst(12))
    }
    let joined = body.joined().filter { $0 != " " }
    #expect(joined == text.string.filter { $0 != " " })
  }

  @Test func `a message that would fill the screen is cut and says how to see the rest`() throws {
    let long = rendering.message(try shown(7, Text(String(repeating: "x", count: 65_536)), at: 0))
    #expect(long.last?.contains("… 61536 more characters, /show #7") == true)
    let tall = rendering.message(try shown(7, Text(String(repeating: "y\n", count: 500)), at: 0))
    #expect(tall.count < 70 && tall.last?.contains("more characters, /show #7") == true)
    let short = rendering.message(try shown(7, Text(String(repeating: "x", count: 4000)), at: 0))
    #expect(short.count == 1)
  }

  @Test func `hostile times are shown without a crash`() throws {
    for time in [Int64.max, 0, 253_402_300_800] {
      #expect(!rendering.page([try shown(1, "a", at: time)]).isEmpty)
    }
  }
}
