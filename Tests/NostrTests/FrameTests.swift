import Nostr
import Testing

private func relay(_ text: String) throws(FrameError) -> RelayMessage {
  try RelayMessage.parse(Array(text.utf8))
}

private func client(_ text: String) throws(FrameError) -> ClientMessage {
  try ClientMessage.parse(Array(text.utf8))
}

/// The name of the case with which a frame is refused, or "ok".
private func refusal(_ parse: () throws(FrameError) -> Void) -> String {
  do throws(FrameError) {
    try parse()
    return "ok"
  } catch {
    switch error {
    case .json: return "json"
    case .notAMessage: return "notAMessage"
    case .unknownLabel: return "unknownLabel"
    case .shape: return "shape"
    case .badEvent(_, let reason): return "badEvent \(reason.reason)"
    case .badSubmission(_, let reason): return "badSubmission \(reason.reason)"
    case .badFilter: return "badFilter"
    }
  }
}

private func sample(seed: UInt64 = 5) -> Event {
  var generator = Generator(seed: seed)
  return generator.event()
}

private func wire(_ event: Event) -> String { String(decoding: event.json(), as: UTF8.self) }

struct RelayFrameTests {
  private let id = String(repeating: "1a", count: 32)

  @Test func `every message is read back as it was written`() throws {
    let event = sample()
    let messages: [RelayMessage] = [
      .event("s\"1", event), .ok(event.id, accepted: true, ""), .ok(nil, accepted: false, "no: é"),
      .eose("s", hints: []), .eose("s", hints: ["finish", "zzz"]), .closed("s", "error: x"),
      .notice("hello\n"), .auth(challenge: "c"), .count("s", 12, approximate: false),
      .count("s", 0, approximate: true), .negMessage("n", [0x61, 0, 0xff]),
      .negError("n", "blocked: too many", recordsMax: 500),
      .negError("n", "closed: slow", recordsMax: nil),
    ]
    for message in messages { #expect(try RelayMessage.parse(message.json()) == message) }
  }

  @Test func `a frame is written in its one spelling`() {
    #expect(RelayMessage.eose("s", hints: ["more"]).json() == bytes("[\"EOSE\",\"s\",[\"more\"]]"))
    #expect(RelayMessage.ok(nil, accepted: false, "x").json() == bytes("[\"OK\",\"\",false,\"x\"]"))
    #expect(
      RelayMessage.count("s", 3, approximate: false).json()
        == bytes("[\"COUNT\",\"s\",{\"count\":3}]"))
  }

  @Test func `texts that may be missing are empty`() throws {
    #expect(try relay("[\"CLOSED\",\"s\"]") == .closed("s", ""))
    #expect(try relay("[\"CLOSED\",\"s\",null]") == .closed("s", ""))
    #expect(
      try relay("[\"OK\",\"\(id)\",true]") == .ok(EventID(hex: id), accepted: true, ""))
    #expect(try relay("[\"OK\",\"\",false,\"bad\"]") == .ok(nil, accepted: false, "bad"))
  }

  @Test(
    arguments: [
      ("[\"EOSE\",\"s\"]", []), ("[\"EOSE\",\"s\",[\"finish\",\"zzz\"]]", ["finish", "zzz"]),
      ("[\"EOSE\",\"s\",[1,\"more\",null]]", ["more"]), ("[\"EOSE\",\"s\",\"finish\"]", []),
      ("[\"EOSE\",\"s\",{},\"later\"]", []),
    ] as [(String, [Text])])
  func `hints are kept and odd ones ignored`(text: String, hints: [Text]) throws {
    #expect(try relay(text) == .eose("s", hints: hints))
  }

  @Test func `elements that a message does not know are stepped over`() throws {
    #expect(try relay(" [ \"NOTICE\" , \"x\" , {\"y\":[1]} , null ] ") == .notice("x"))
    let event = sample()
    #expect(try relay("[\"EVENT\",\"s\",\(wire(event)),1]") == .event("s", event))
    #expect(try relay("[\"N\\u004fTICE\",\"x\"]") == .notice("x"))
  }

  @Test(arguments: [
    ("[]", "notAMessage"), ("{}", "notAMessage"), ("null", "notAMessage"), ("1", "notAMessage"),
    ("[1]", "notAMessage"), ("[[\"EOSE\",\"s\"]]", "notAMessage"), ("", "json"), ("[", "json"),
    ("nul", "json"), ("{} x", "json"), ("[\"NOTICE\",\"x\"] x", "json"),
    ("[\"NOTICE\",\"x\"", "json"),
    ("[\"NOTICE\",\"x\",]", "json"), ("[\"NOTICE\" \"x\"]", "json"),
    ("[\"EOSE\",\"s\",[1,]]", "json"),
    ("[\"XYZ\",1]", "unknownLabel"), ("[\"\"]", "unknownLabel"),
    ("[\"event\",\"s\"]", "unknownLabel"),
    ("[\"AUTH\"]", "shape"), ("[\"AUTH\",1]", "shape"), ("[\"EVENT\"]", "shape"),
    ("[\"EVENT\",\"s\"]", "badEvent shape"), ("[\"EVENT\",\"s\",[]]", "badEvent shape"),
    ("[\"EVENT\",\"s\",null]", "badEvent shape"), ("[\"EVENT\",{}]", "shape"),
    ("[\"EVENT\",\"s", "shape"), ("[\"EVENT\"", "shape"), ("[\"EVENT\",\"s\"", "badEvent json"),
    ("[\"OK\",\"x\"]", "shape"), ("[\"OK\",\"\"]", "shape"), ("[\"OK\",\"\",\"true\"]", "shape"),
    ("[\"OK\",\"\",1]", "shape"), ("[\"OK\",1,true]", "shape"), ("[\"OK\"]", "shape"),
    ("[\"EOSE\"]", "shape"), ("[\"EOSE\",null]", "shape"), ("[\"CLOSED\"]", "shape"),
    ("[\"NOTICE\"]", "shape"), ("[\"NOTICE\",{}]", "shape"), ("[\"COUNT\",\"s\"]", "shape"),
    ("[\"COUNT\",\"s\",{\"count\":-1}]", "shape"), ("[\"COUNT\",\"s\",{\"count\":\"1\"}]", "shape"),
    ("[\"COUNT\",\"s\",3]", "shape"), ("[\"NEG-MSG\",\"s\",\"6\"]", "shape"),
    ("[\"NEG-MSG\",\"s\",\"zz\"]", "shape"), ("[\"NEG-MSG\",\"s\"]", "shape"),
    ("[\"NEG-ERR\",\"s\"]", "shape"), ("[\"EVENT\",\"s\",{}]", "badEvent shape"),
    ("[\"EVENT\",\"s\",{\"id\":1]", "badEvent json"), ("[\"EVENT\",\"s\",{}", "badEvent json"),
    ("[\"EVENT\",\"s\",{\"x\":\"\\ud800\"}]", "badEvent json"),
  ])
  func `a malformed frame is a typed error`(text: String, expected: String) {
    #expect(refusal { () throws(FrameError) in _ = try relay(text) } == expected)
  }

  @Test func `an OK for something that is no id is malformed`() {
    #expect(refusal { () throws(FrameError) in _ = try relay("[\"OK\",\"x\",true]") } == "shape")
    let upper = "[\"OK\",\"\(id.uppercased())\",true,\"\"]"
    #expect(refusal { () throws(FrameError) in _ = try relay(upper) } == "shape")
  }

  @Test func `nesting of any depth is an answer, not a crash`() {
    let open = String(repeating: "[", count: 10_000)
    let close = String(repeating: "]", count: 10_000)
    #expect(refusal { () throws(FrameError) in _ = try relay(open + close) } == "notAMessage")
    #expect(refusal { () throws(FrameError) in _ = try relay(open) } == "json")
    let hints = "[\"EOSE\",\"s\",\(open)\(close)]"
    #expect(refusal { () throws(FrameError) in _ = try relay(hints) } == "json")
    let extra = "[\"NOTICE\",\"s\",\(open)\(close)]"
    #expect(refusal { () throws(FrameError) in _ = try relay(extra) } == "ok")
  }

  @Test func `a bad event tells whose page has a hole, and why`() {
    let bad = wire(sample()).replacing("\"kind\":", with: "\"kind\":-")
    #expect(throws: FrameError.badEvent("page", .range("kind is not a plain integer"))) {
      try RelayMessage.parse(bytes("[\"EVENT\",\"page\",\(bad)]"))
    }
  }

  @Test func `an EVENT cut short or followed by noise still tells whose page has a hole`() {
    let whole = "[\"EVENT\",\"page\",\(wire(sample()))]"
    for frame in [String(whole.dropLast()), String(whole.dropLast(9)), whole + "x", whole + "]"] {
      do throws(FrameError) {
        _ = try RelayMessage.parse(bytes(frame))
        Issue.record("\(frame.suffix(20)) was read")
      } catch {
        guard case .badEvent("page", _) = error else { Issue.record("\(error)"); continue }
      }
    }
    #expect((try? RelayMessage.parse(bytes(whole))) != nil)
  }

  @Test func `an EVENT that does not say whose is told apart from other noise`() {
    func isUnaddressed(_ text: String) -> Bool {
      do throws(FrameError) {
        _ = try RelayMessage.parse(bytes(text))
        return false
      } catch {
        return error.isUnaddressedEvent
      }
    }
    for text in [
      "[\"EVENT\"]", "[\"EVENT\",5,{}]", "[\"EVENT\",\"pa", "[\"EVENT\",\"\\ud800\",{}]",
    ] {
      #expect(isUnaddressed(text), "\(text)")
    }
    for text in ["[\"EOSE\"]", "null", "", "[[[", "[\"EVENTS\",5]", "[\"EVENT\",\"s\",5]"] {
      #expect(!isUnaddressed(text), "\(text)")
    }
  }

  @Test func `a long unknown label is not kept`() {
    let label = String(repeating: "x", count: 33)
    #expect(throws: FrameError.unknownLabel("")) { try RelayMessage.parse(bytes("[\"\(label)\"]")) }
    #expect(throws: FrameError.unknownLabel("REQ")) { try RelayMessage.parse(bytes("[\"REQ\"]")) }
  }
}

struct ClientFrameTests {
  @Test func `every message is read back as it was written`() throws {
    let event = sample()
    let filter = Filter(kinds: [9], tags: [0x68: ["ops"]], limit: 0)
    let messages: [ClientMessage] = [
      .event(event), .auth(event), .req("s", [filter, Filter()]), .close("s"),
      .count("s", [filter]), .negOpen("n", filter, [0x61]), .negMessage("n", []),
      .negClose("n"),
    ]
    for message in messages { #expect(try ClientMessage.parse(message.json()) == message) }
  }

  @Test func `a request is written in its one spelling`() {
    let request = ClientMessage.req("s", [Filter(kinds: [9], limit: 1), Filter(since: 5)])
    #expect(request.json() == bytes("[\"REQ\",\"s\",{\"kinds\":[9],\"limit\":1},{\"since\":5}]"))
  }

  @Test(arguments: [
    ("[\"REQ\"]", "shape"), ("[\"REQ\",\"s\"]", "shape"), ("[\"REQ\",\"\",{}]", "shape"),
    ("[\"REQ\",1,{}]", "shape"), ("[\"REQ\",\"s\",{}]", "ok"), ("[\"REQ\",\"s\",[]]", "badFilter"),
    ("[\"REQ\",\"s\",{\"ids\":[\"x\"]}]", "badFilter"), ("[\"REQ\",\"s\",{},1]", "badFilter"),
    ("[\"REQ\",\"s\",{}", "json"), ("[\"COUNT\",\"s\"]", "shape"), ("[\"CLOSE\"]", "shape"),
    ("[\"EVENT\"]", "shape"), ("[\"EVENT\",\"s\"]", "shape"),
    ("[\"EVENT\",{}]", "badSubmission shape"),
    ("[\"AUTH\",\"challenge\"]", "shape"), ("[\"NEG-OPEN\",\"s\"]", "shape"),
    ("[\"NEG-OPEN\",\"s\",{},1]", "shape"), ("[\"NEG-OPEN\",\"s\",[],\"61\"]", "badFilter"),
    ("[\"EOSE\",\"s\"]", "unknownLabel"), ("[]", "notAMessage"), ("null", "notAMessage"),
  ])
  func `a malformed frame is a typed error`(text: String, expected: String) {
    #expect(refusal { () throws(FrameError) in _ = try client(text) } == expected)
  }

  @Test func `a subscription id has at most 256 bytes`() {
    func request(_ length: Int) -> String {
      "[\"REQ\",\"\(String(repeating: "x", count: length))\",{}]"
    }
    #expect(refusal { () throws(FrameError) in _ = try client(request(256)) } == "ok")
    #expect(refusal { () throws(FrameError) in _ = try client(request(257)) } == "shape")
  }

  @Test func `the id of a bad event is told where it can be read`() {
    let event = sample()
    let bad = wire(event).replacing("\"kind\":", with: "\"kind\":-")
    let reason = ScanError.range("kind is not a plain integer")
    #expect(throws: FrameError.badSubmission(event.id, reason)) {
      try ClientMessage.parse(bytes("[\"EVENT\",\(bad)]"))
    }
  }
}

struct FramePropertyTests {
  @Test(arguments: [21, 22, UInt64.random(in: 0...UInt64.max)])
  func `changed bytes give a message or a typed error`(seed: UInt64) throws {
    var generator = Generator(seed: seed)
    let event = generator.event()
    let frames = [
      RelayMessage.event("s", event).json(), RelayMessage.ok(event.id, accepted: true, "x").json(),
      RelayMessage.eose("s", hints: ["finish"]).json(),
      RelayMessage.count("s", 5, approximate: true).json(),
      ClientMessage.req("s", [Filter(authors: [event.pubkey], kinds: [1], limit: 3)]).json(),
      ClientMessage.negOpen("s", Filter(since: 1), [1, 2]).json(),
    ]
    for _ in 0..<3000 {
      var frame = frames[generator.below(frames.count)]
      for _ in 0...generator.below(3) {
        frame[generator.below(frame.count)] = UInt8(truncatingIfNeeded: generator.next())
      }
      // Most are refused; what is not must be a fixed point.
      if let message = try? RelayMessage.parse(frame) {
        #expect(try RelayMessage.parse(message.json()) == message, "seed \(seed)")
      }
      if let message = try? ClientMessage.parse(frame) {
        #expect(try ClientMessage.parse(message.json()) == message, "seed \(seed)")
      }
    }
  }
}
