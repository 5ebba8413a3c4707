import Nostr
import Testing

struct EventKindTests {
  @Test(
    arguments: [
      (0, .replaceable), (1, .regular), (3, .replaceable), (9, .regular), (9999, .regular),
      (10000, .replaceable), (13534, .replaceable), (19999, .replaceable), (20000, .ephemeral),
      (29999, .ephemeral), (30000, .addressable), (39000, .addressable), (39999, .addressable),
      (40000, .regular), (65535, .regular),
    ] as [(UInt16, EventKind.Storage)])
  func `a number decides how long an event is kept`(number: UInt16, storage: EventKind.Storage) {
    #expect(EventKind(number).storage == storage)
  }

  @Test func `the table is ascending and names each kind once`() {
    let kinds = EventKind.table.map(\.kind)
    #expect(kinds == Set(kinds).sorted())
    #expect(EventKind.table.allSatisfy { !$0.name.isEmpty })
    #expect(EventKind.message.name == "message")
    #expect(EventKind(65000).name == nil)
    #expect(EventKind(65000).gate == .open)
  }

  @Test func `what a relay signs is refused to people, and what people ask of it is not`() {
    for number: UInt16 in [39000, 39001, 39002, 39003, 13534, 44100, 44101] {
      #expect(EventKind(number).isRelaySigned)
    }
    for number: UInt16 in [0, 9, 9000, 9022, 22242, 24242, 27235, 30078, 9734, 1984] {
      #expect(!EventKind(number).isRelaySigned)
    }
  }

  @Test func `gated kinds are known`() {
    for number: UInt16 in [24200, 44100, 44101, 1059, 30622, 44200] {
      #expect(EventKind(number).gate == .addressee)
    }
    for number: UInt16 in [30300, 30350, 30179] { #expect(EventKind(number).gate == .author) }
    #expect(EventKind(30174).gate == .authorOrAddressee)
    #expect(EventKind.message.gate == .open)
  }

  @Test func `a channel's kinds hold every one of Buzz's`() {
    let wanted: Set<EventKind> = [
      5, 7, 9005, 9, 40001, 40002, 45001, 45003, 40003, 40008, 40099, 48100, 48101, 48102, 48103,
    ]
    #expect(wanted.isSubset(of: EventKind.channel))
    #expect(EventKind.unreadBearing.isSubset(of: EventKind.channel))
    #expect(EventKind.relaySigned.isDisjoint(with: EventKind.channel))
  }
}

struct ThreadPositionTests {
  private let first = String(repeating: "1a", count: 32)
  private let second = String(repeating: "2b", count: 32)
  private let third = String(repeating: "3c", count: 32)

  private func position(_ tags: [[String]], kind: EventKind = .message) -> ThreadPosition {
    Event(
      id: EventID(.zero), pubkey: PublicKey(.zero), createdAt: 0, kind: kind, tags: Tags(tags),
      content: "", sig: Signature(first: .zero, second: .zero)
    ).threadPosition
  }

  private func place(
    root: String, parent: String, isBroadcast: Bool = false
  ) -> ThreadPosition {
    ThreadPosition(
      root: EventID(hex: root), parent: EventID(hex: parent), isBroadcast: isBroadcast)
  }

  @Test func `the last reply is the parent and the first root the root`() {
    let tags = [
      ["e", first, "", "root"], ["e", second, "", "root"], ["e", second, "", "reply"],
      ["e", third, "wss://r.test", "reply", "author"],
    ]
    #expect(position(tags) == place(root: first, parent: third))
  }

  @Test func `without a root the parent is the root`() {
    #expect(position([["e", first, "", "reply"]]) == place(root: first, parent: first))
  }

  @Test func `a root alone, a tag without a marker and a quote do not thread`() {
    #expect(position([["e", first, "", "root"]]) == .none)
    #expect(position([["e", first], ["e", second, "reply"], ["q", third]]) == .none)
    #expect(position([["e", first, "", "mention"]]) == .none)
  }

  @Test func `an id that is not lowercase hex counts as absent`() {
    #expect(position([["e", first.uppercased(), "", "reply"]]) == .none)
    let tags = [["e", "zz", "", "root"], ["e", second, "", "root"], ["e", third, "", "reply"]]
    #expect(position(tags) == place(root: second, parent: third))
  }

  @Test func `a broadcast reply stands in the channel too`() {
    let reply = ["e", first, "", "reply"]
    #expect(
      position([reply, ["broadcast", "1"]]) == place(root: first, parent: first, isBroadcast: true))
    #expect(position([reply, ["broadcast", "1"]]).isThreadOnly == false)
    #expect(position([reply]).isThreadOnly)
    #expect(position([reply, ["broadcast", "0"]]).isThreadOnly)
    #expect(position([["broadcast", "1"]]) == .none)
  }

  @Test func `a comment names its root and its parent by letter`() {
    let tags = [["E", first, "", "author"], ["K", "11"], ["e", second], ["k", "1111"]]
    #expect(position(tags, kind: .comment) == place(root: first, parent: second))
    #expect(position([["E", first]], kind: .comment) == place(root: first, parent: first))
    #expect(position([["A", "30023:x:y"], ["a", "30023:x:y"]], kind: .comment) == .none)
    #expect(position(tags, kind: .message) == .none)
  }
}
