import Nostr
import Testing

private let low = String(repeating: "0a", count: 32)
private let high = String(repeating: "f0", count: 32)

private func filter(_ text: String) throws(FilterError) -> Filter {
  try Filter(json: Array(text.utf8))
}

private func event(
  kind: EventKind = 9, at: Timestamp = 100, by author: String = low, id: String = low,
  tags: [[String]] = [["h", "ops"], ["t", "x", "y"], ["bare"], ["E", "root"]]
) -> Event {
  Event(
    id: EventID(hex: id) ?? EventID(.zero), pubkey: PublicKey(hex: author) ?? PublicKey(.zero),
    createdAt: at, kind: kind, tags: Tags(tags), content: "",
    sig: Signature(first: .zero, second: .zero))
}

struct FilterJSONTests {
  @Test func `keys are sorted and unset fields left out`() throws {
    let text =
      "{\"#E\":[\"r\"],\"#h\":[\"ops\"],\"authors\":[\"\(low)\"],\"ids\":[\"\(high)\"],"
      + "\"kinds\":[9,7],\"limit\":0,\"search\":\"a\\\"b\",\"since\":1,\"until\":2}"
    #expect(String(decoding: try filter(text).json(), as: UTF8.self) == text)
    #expect(Filter().json() == bytes("{}"))
  }

  @Test func `a limit of zero is kept`() throws {
    #expect(try filter("{\"limit\":0}").limit == 0)
    #expect(try filter("{}").limit == nil)
  }

  @Test func `an empty list is kept, for it asks for nothing`() throws {
    #expect(Filter(authors: []).json() == bytes("{\"authors\":[]}"))
    #expect(try filter("{\"authors\":[],\"#p\":[]}") == Filter(authors: [], tags: [0x70: []]))
  }

  @Test func `every name of a filter is read, and what is not read is not known`() {
    for name in Filter.names + ["#h", "#Z"] {
      #expect(Filter.knows(name))
      #expect(throws: FilterError.self) { try filter("{\"\(name)\":null}") }
    }
    for name in ["kind", "#1", "#&", "#hh", "h", "#"] as [Text] {
      #expect(!Filter.knows(name))
      #expect(throws: Never.self) { try filter("{\"\(name)\":null}") }
    }
  }

  @Test func `unknown keys are ignored`() throws {
    let text =
      "{\"kinds\":[1],\"before_id\":\"x\",\"#ab\":[1],\"#1\":[2],\"#\":3,\"&t\":[],\"#é\":1}"
    #expect(try filter(text) == Filter(kinds: [1]))
  }

  @Test(arguments: [
    ("{\"ids\":[\"abc\"]}", "ids"), ("{\"ids\":\"\(low)\"}", "ids"), ("{\"ids\":null}", "ids"),
    ("{\"authors\":[\"\(low.uppercased())\"]}", "authors"), ("{\"authors\":[1]}", "authors"),
    ("{\"kinds\":[65536]}", "kinds"), ("{\"kinds\":[-1]}", "kinds"), ("{\"kinds\":[1.0]}", "kinds"),
    ("{\"kinds\":[\"1\"]}", "kinds"), ("{\"since\":-1}", "since"), ("{\"since\":\"1\"}", "since"),
    ("{\"until\":1e9}", "until"), ("{\"until\":9223372036854775808}", "until"),
    ("{\"limit\":-1}", "limit"), ("{\"limit\":-0}", "limit"), ("{\"limit\":null}", "limit"),
    ("{\"search\":[]}", "search"), ("{\"#h\":\"ops\"}", "#h"), ("{\"#h\":[1]}", "#h"),
    ("{\"kinds\":[1],\"kinds\":[2]}", "kinds"),
  ])
  func `a malformed field is named`(text: String, name: String) {
    do throws(FilterError) {
      _ = try filter(text)
      Issue.record("\(text) was taken")
    } catch .field(let field, _) {
      #expect(field.string == name)
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test func `what is no object is no filter`() {
    #expect(throws: FilterError.notAnObject) { try filter("[]") }
    #expect(throws: FilterError.self) { try filter("{") }
    #expect(throws: FilterError.self) { try filter("{} {}") }
  }

  @Test func `filters of one meaning have one canonical form`() {
    let first = Filter(
      ids: [EventID(.zero)], kinds: [9, 7, 9], tags: [0x68: ["b", "a", "b"]], limit: 5)
    let second = Filter(
      ids: [EventID(.zero), EventID(.zero)], kinds: [7, 9], tags: [0x68: ["a", "b"]], limit: 5)
    #expect(first != second)
    #expect(first.canonical == second.canonical)
    #expect(first.canonical.json() == second.canonical.json())
    #expect(first.canonical != Filter(kinds: [7, 9]).canonical)
  }
}

struct FilterMatchTests {
  private static let cases: [(Filter, Bool)] = [
    (Filter(), true),
    (Filter(kinds: [7, 9]), true), (Filter(kinds: [7]), false), (Filter(kinds: []), false),
    (Filter(since: 100, until: 100), true), (Filter(since: 101), false), (Filter(until: 99), false),
    (Filter(tags: [0x68: ["ops", "dev"]]), true), (Filter(tags: [0x68: ["dev"]]), false),
    (Filter(tags: [0x68: ["ops"], 0x74: ["x"]]), true),
    (Filter(tags: [0x68: ["ops"], 0x74: ["y"]]), false),
    (Filter(tags: [0x45: ["root"]]), true), (Filter(tags: [0x65: ["root"]]), false),
    (Filter(tags: [0x68: []]), false), (Filter(limit: 0), true),
  ]

  @Test func `fields are joined by AND, values by OR, and bounds are inclusive`() {
    for (filter, expected) in Self.cases {
      #expect(filter.matches(event()) == expected, "\(filter)")
      #expect(FilterMatcher(filter).matches(event()) == expected, "\(filter)")
    }
  }

  @Test func `authors and ids are exact`() {
    let author = PublicKey(hex: low).map { [$0] }
    #expect(Filter(authors: author).matches(event()))
    #expect(!Filter(authors: author).matches(event(by: high)))
    let wanted = EventID(hex: low).map { [$0] }
    #expect(Filter(ids: wanted).matches(event()))
    #expect(!Filter(ids: wanted).matches(event(id: high)))
  }

  @Test func `one of several filters is enough`() {
    let matcher = FilterMatcher([Filter(kinds: [1]), Filter(kinds: [9])])
    #expect(matcher.matches(event()))
    #expect(!matcher.matches(event(kind: 2)))
    #expect(!FilterMatcher([]).matches(event()))
  }

  @Test(arguments: [11, UInt64.random(in: 0...UInt64.max)])
  func `long lists give what short ones give`(seed: UInt64) {
    var generator = Generator(seed: seed)
    let events = (0..<60).map { _ in generator.event() }
    for size in [1, 8, 9, 40] {
      let some = events.prefix(size)
      let filters = [
        Filter(ids: some.map(\.id)), Filter(authors: some.map(\.pubkey)),
        Filter(kinds: some.map(\.kind)),
        Filter(tags: [0x61: some.flatMap { $0.tags.values("a") }]),
      ]
      for filter in filters {
        let matcher = FilterMatcher(filter)
        #expect(events.allSatisfy { matcher.matches($0) == filter.matches($0) }, "seed \(seed)")
      }
    }
  }
}
