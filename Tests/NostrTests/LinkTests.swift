import Nostr
import Testing

struct RelayURLTests {
  @Test(arguments: [
    "WSS://Relay.Test:443", "wss://relay.test", "wss://relay.test/", "wss://RELAY.test:443/",
    "wss://relay.test?x=1", "wss://relay.test/#frag",
  ])
  func `one relay has one address`(text: String) throws {
    let url = try #require(RelayURL(text))
    #expect(url == RelayURL("wss://relay.test"))
    #expect(url.description == "wss://relay.test")
    #expect(url.hostAndPort == "relay.test")
  }

  @Test(arguments: [
    "wss://relay.test/pair", "wss://relay.test/Pair", "wss://relay.test/pair/",
    "wss://relay.test:80", "ws://relay.test", "wss://relay.test.", "wss://a.relay.test",
  ])
  func `another path, port, scheme or host is another relay`(text: String) throws {
    let url = try #require(RelayURL(text))
    #expect(url != RelayURL("wss://relay.test"))
    #expect(url.description == text)
  }

  @Test(arguments: [
    "", "relay.test", "https://relay.test", "wss://", "wss:///x", "wss://:443", "wss://a b.test",
    "wss://user@relay.test", "wss://relay.test:0", "wss://relay.test:65536", "wss://relay.test:",
    "wss://relay.test:+443", "wss://relay.test:4a3", "wss://relay.test:000443", "wss://é.test",
    "wss://[::1", "wss://[]", "wss://[::1]x", "wss://[relay.test]", "wss://::1",
    "wss://relay.test/\u{1}", "wss://relay.test/a b", " wss://relay.test",
    "wss:/\u{338}/relay.test",
    "wss://relay\u{0}.test", "wss://relay%2etest",
    "wss://.", "wss://..", "wss://...", "wss://..:443", "wss://.relay.test", "wss://relay..test",
    "wss://relay.test..", "wss://-relay.test", "wss://relay-.test", "wss://256.0.0.1",
    "wss://1.2.3", "wss://01.2.3.4", "wss://relay.1", "wss://[:]", "wss://[:::]", "wss://[1::2::3]",
    "wss://[1:2:3:4:5:6:7]", "wss://[1:2:3:4:5:6:7:8:9]", "wss://[12345::]", "wss://[::1.2.3]",
    "wss://[1.2.3.4::]",
  ])
  func `what a relay cannot have is refused`(text: String) { #expect(RelayURL(text) == nil) }

  @Test(arguments: [
    "wss://r", "wss://a-b.c_d.test", "wss://1.2.3.4", "wss://xn--bcher-kva.test", "wss://1.test",
    "wss://[::]", "wss://[1::]", "wss://[::1]", "wss://[1:2:3:4:5:6:7:8]", "wss://[::ffff:1.2.3.4]",
    "wss://[1:2:3:4:5:6:1.2.3.4]", "wss://[fe80::1:2]",
  ])
  func `names and addresses that there can be are taken`(text: String) throws {
    #expect(try #require(RelayURL(text)).description == text)
  }

  @Test(arguments: [63, 64])
  func `a label is as long as the DNS lets it be`(count: Int) {
    let url = RelayURL("wss://\(String(repeating: "a", count: count)).test")
    #expect((url != nil) == (count == 63))
  }

  @Test(arguments: [249, 250])
  func `a host is as long as it can be as the name of a folder`(count: Int) {
    let host = String(repeating: "a.", count: count / 2) + String(repeating: "a", count: count % 2)
    let url = RelayURL("wss://\(host):65535")
    #expect((url != nil) == (count == 249))
    #expect(url.map { $0.hostAndPort.utf8.count <= 255 } ?? true)
  }

  @Test func `an IPv6 address keeps its brackets in the text alone`() throws {
    let url = try #require(RelayURL("ws://[2001:DB8::1]:7777/x"))
    #expect(url.host == "2001:db8::1")
    #expect(url.port == 7777)
    #expect(url.hostAndPort == "[2001:db8::1]:7777")
    #expect(url.description == "ws://[2001:db8::1]:7777/x")
  }

  @Test(arguments: [
    ("ws://localhost", true), ("ws://LOCALHOST:1", true), ("ws://127.0.0.1:7777", true),
    ("ws://127.8.9.10", true), ("ws://[::1]", true), ("ws://127.evil.test", false),
    ("ws://127.0.0.1.evil.test", false), ("ws://128.0.0.1", false), ("ws://localhost.test", false),
  ])
  func `only this machine is loopback`(text: String, expected: Bool) throws {
    #expect(try #require(RelayURL(text)).isLoopback == expected)
  }
}

struct DeepLinkTests {
  private let id = String(repeating: "1a", count: 32)
  private let root = String(repeating: "2b", count: 32)

  @Test func `a link is read as it is written`() throws {
    let text = "buzz://message?channel=0b7c-1&id=\(id)&thread=\(root)"
    let link = try #require(DeepLink(text))
    #expect(
      link
        == DeepLink(
          channel: "0b7c-1", id: try #require(EventID(hex: id)), thread: EventID(hex: root)))
    #expect(link.text == text)
    #expect(DeepLink("BUZZ://Message?thread=&id=\(id)&channel=0b7c-1&x=y")?.thread == nil)
    #expect(DeepLink("buzz://message/?channel=a%20b&id=\(id)")?.channel == "a b")
  }

  @Test func `a link without channel or id, or of another kind, is none`() {
    #expect(DeepLink("buzz://message?id=\(id)") == nil)
    #expect(DeepLink("buzz://message?channel=&id=\(id)") == nil)
    #expect(DeepLink("buzz://message?channel=a") == nil)
    #expect(DeepLink("buzz://message?channel=a&id=\(id.uppercased())") == nil)
    #expect(DeepLink("buzz://message?channel=a&id=\(id)&thread=zz") == nil)
    #expect(DeepLink("buzz://join?channel=a&id=\(id)") == nil)
    #expect(DeepLink("https://message?channel=a&id=\(id)") == nil)
    #expect(DeepLink("") == nil)
  }
}

struct InviteLinkTests {
  private let relay = RelayURL("wss://relay.test:4433")

  @Test(arguments: [
    "https://relay.test:4433/invite/abcdefgh", " https://Relay.Test:4433/invite/abcdefgh?x=1 ",
    "buzz://join?relay=wss%3A%2F%2Frelay.test%3A4433&code=abcdefgh",
    "comb://JOIN?code=abcdefgh&relay=wss://relay.test:4433/",
  ])
  func `an invitation names a relay and a code`(text: String) throws {
    let link = try #require(InviteLink(text))
    #expect(link.relay == relay)
    #expect(link.code == "abcdefgh")
  }

  @Test func `plain http is for this machine alone`() {
    #expect(InviteLink("http://localhost:80/invite/abcdefgh")?.relay == RelayURL("ws://localhost"))
    #expect(InviteLink("http://relay.test/invite/abcdefgh") == nil)
  }

  @Test(arguments: [
    "https://relay.test/invite/short", "https://relay.test/invite/abc%20defgh",
    "https://relay.test/invite", "https://relay.test/x/invite/abcdefgh",
    "https://relay.test/join/abcdefgh", "buzz://join?code=abcdefgh",
    "buzz://join?relay=wss://a.test",
    "buzz://message?relay=wss://a.test&code=abcdefgh", "ftp://relay.test/invite/abcdefgh",
    "https:///invite/abcdefgh", "relay.test/invite/abcdefgh",
  ])
  func `anything else is no invitation`(text: String) { #expect(InviteLink(text) == nil) }

  @Test func `a code has 8 to 512 characters`() throws {
    let relay = try #require(relay)
    #expect(InviteLink(relay: relay, code: Text(String(repeating: "x", count: 512))) != nil)
    #expect(InviteLink(relay: relay, code: Text(String(repeating: "x", count: 513))) == nil)
    #expect(InviteLink(relay: relay, code: "1234567") == nil)
    #expect(InviteLink(relay: relay, code: "12345678") != nil)
  }

  @Test func `a code may say when it expires`() throws {
    let relay = try #require(relay)
    // {"e":1700000000} in base64url.
    #expect(
      InviteLink(relay: relay, code: "eyJlIjoxNzAwMDAwMDAwfQ.c2ln")?.expiryHint == 1_700_000_000)
    #expect(InviteLink(relay: relay, code: "v2.eyJlIjoxNzAwMDAwMDAwfQ")?.expiryHint == nil)
    #expect(InviteLink(relay: relay, code: "abcdefgh")?.expiryHint == nil)
    #expect(InviteLink(relay: relay, code: "!!!!!!!!")?.expiryHint == nil)
  }
}
