import Nostr
import Testing

private let key = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d"
private let id = "12878e4781bb3a1e36e68f0bcdd9df7b532cec3306519e07517ffe1c4ae7e86c"
private let npub = "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"
private let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"

private let pubkey = PublicKey(hex: key) ?? PublicKey(.zero)
private let eventID = EventID(hex: id) ?? EventID(.zero)
private let relays = ["wss://relay.test", "wss://groups.test:4433/pair"].compactMap {
  RelayURL($0)
}

/// Entities whose spelling another implementation made.
private let spelled: [(String, NIP19.Entity)] = [
  (npub, .npub(pubkey)),
  ("note1z2rcu3uphvapudhx3u9umkwl0dfjempnqegeup630llpcjh8apkqrd7sxy", .note(eventID)),
  (
    "nprofile1qqsrhuxx8l9ex335q7he0f09aej04zpazpl0ne2cgukyawd24mayt8gpzpmhxue69uhhyetvv9ujuar9"
      + "wd6qzxmhwden5te0vaex7atswvh8getnwsargdpnxvhhqctfwg4aet2z",
    .nprofile(pubkey, relays: relays)
  ),
  (
    "nevent1qqsp9puwg7qmkws7xmng7z7dm80hk5evasesv5v7qaghllsuftn7smqzyqalp33lewf5vdq847t6te0wvn"
      + "ags0gs0mu72kz8938tn24wlfze6qcyqqqqqzgpzpmhxue69uhhyetvv9ujuar9wd6qzxmhwden5te0vaex7at"
      + "swvh8getnwsargdpnxvhhqctfwg9f9kh5",
    .nevent(eventID, relays: relays, author: pubkey, kind: 9)
  ),
  (
    "nevent1qqsp9puwg7qmkws7xmng7z7dm80hk5evasesv5v7qaghllsuftn7smqny64tm",
    .nevent(eventID, relays: [], author: nil, kind: nil)
  ),
  (
    "naddr1qqykxctxcw5j6mmswvpzqwlsccluhy6xxsr6l9a9uhhxf75g85g8a709tprjcn4e42h053vaqvzqqqyctqq3"
      + "qamnwvaz7tmjv4kxz7fww3jhxaqp6euqh",
    .naddr(
      EventAddress(kind: 39000, author: pubkey, identifier: "caf\u{e9}-ops"),
      relays: Array(relays.prefix(1)))
  ),
  (
    "naddr1qqqqygpm7rrrljungc6q0tuh5hj7ue863q73qlheu4vywtzwhx42a7j9n5psgqqqyufq56qztl",
    .naddr(EventAddress(kind: 10002, author: pubkey, identifier: ""), relays: [])
  ),
]

/// A list entity of raw entries.
private func entity(_ prefix: String, _ entries: [(UInt8, [UInt8])]) -> String {
  Bech32.encode(
    prefix: prefix, entries.flatMap { [$0.0, UInt8($0.1.count)] + $0.1 })
}

private func failure(_ text: String) -> NIP19.Failure? {
  do throws(NIP19.Failure) {
    _ = try NIP19.decode(text)
    return nil
  } catch {
    return error
  }
}

struct NIP19Tests {
  @Test(arguments: 0..<spelled.count)
  func `an entity is spelled as others spell it`(index: Int) throws {
    let (text, entity) = spelled[index]
    #expect(try NIP19.decode(text) == entity)
    #expect(NIP19.encode(entity) == text)
    #expect(try NIP19.decode(text.uppercased()) == entity)
    #expect(try NIP19.decode("nostr:" + text) == entity)
    #expect(try NIP19.decode("NOSTR:" + text) == entity)
  }

  @Test func `the profile of the specification is read with its relays`() throws {
    let text =
      "nprofile1qqsrhuxx8l9ex335q7he0f09aej04zpazpl0ne2cgukyawd24mayt8gpp4mhxue69uhhytnc9e3k7mgp"
      + "z4mhxue69uhkg6nzv9ejuumpv34kytnrdaksjlyr9p"
    let wanted = ["wss://r.x.com", "wss://djbas.sadkb.com"].compactMap { RelayURL($0) }
    #expect(try NIP19.decode(text) == .nprofile(pubkey, relays: wanted))
  }

  @Test func `a bad optional entry costs nothing else`() throws {
    let hexAuthor = Array(key.utf8)
    let text = entity(
      "nevent",
      [
        (1, [0xff, 0xfe]), (1, Array("not a relay".utf8)), (2, hexAuthor), (9, [1, 2]),
        (3, [0, 0, 9]), (0, eventID.bytes.array), (1, Array("wss://relay.test".utf8)),
      ])
    #expect(
      try NIP19.decode(text)
        == .nevent(eventID, relays: Array(relays.prefix(1)), author: nil, kind: nil))
  }

  @Test func `what an entity cannot be without is demanded`() {
    let author = pubkey.bytes.array
    #expect(failure(entity("nprofile", [])) == .missing("key"))
    #expect(failure(entity("nprofile", [(0, Array(key.utf8))])) == .missing("key"))
    #expect(failure(entity("nevent", [(0, [1])])) == .missing("id"))
    #expect(failure(entity("naddr", [(2, author), (3, [0, 0, 0, 9])])) == .missing("identifier"))
    #expect(failure(entity("naddr", [(0, []), (3, [0, 0, 0, 9])])) == .missing("author"))
    #expect(failure(entity("naddr", [(0, []), (2, author)])) == .missing("kind"))
    let high = entity("naddr", [(0, []), (2, author), (3, [0, 1, 0, 0])])
    #expect(failure(high) == .missing("kind"))
    #expect(failure(entity("naddr", [(0, []), (2, author), (3, [0, 0, 0, 9])])) == nil)
  }

  @Test func `an entry past the end is an error`() {
    let cut = Bech32.encode(prefix: "nevent", [0, 33] + eventID.bytes.array)
    #expect(failure(cut) == .truncated)
    #expect(failure(Bech32.encode(prefix: "nevent", [0])) == .truncated)
  }

  @Test func `a bare key or id has 32 bytes`() {
    #expect(failure(Bech32.encode(prefix: "npub", [1, 2])) == .bech32(.payloadLength(2)))
    #expect(failure(Bech32.encode(prefix: "note", [])) == .bech32(.payloadLength(0)))
    #expect(failure(Bech32.encode(prefix: "nfoo", [1])) == .unknownPrefix("nfoo"))
  }

  @Test func `the invitation of a group's address is read, and only there`() throws {
    let naddr = spelled[5].0
    let reference = try NIP19.reference("nostr:\(naddr)?x=1&invite=a%20b%2Fc&invite=no")
    #expect(reference == NIP19.Reference(spelled[5].1, invite: "a b/c"))
    #expect(NIP19.uri(reference) == "nostr:\(naddr)?invite=a%20b%2Fc")
    #expect(try NIP19.reference(naddr).invite == nil)
    #expect(try NIP19.reference("\(naddr)?invite=%ff").invite == nil)
    #expect(try NIP19.reference("\(npub)?invite=abc") == NIP19.Reference(.npub(pubkey)))
  }

  @Test func `an identifier too long for its entry has no spelling`() {
    func address(_ length: Int) -> NIP19.Entity {
      let identifier = Text(String(repeating: "x", count: length))
      return .naddr(EventAddress(kind: 39000, author: pubkey, identifier: identifier), relays: [])
    }
    #expect(NIP19.encode(address(256)) == nil)
    #expect(NIP19.encode(address(255)) != nil)
  }

  @Test func `a secret key is lent, and never taken for something to share`() throws {
    #expect(failure(nsec) == .secretKey)
    let bytes = try NIP19.withSecretKey(nsec: nsec) { (bytes) throws(Never) in Array(bytes) }.get()
    #expect(Hex.string(bytes) == "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa")
    #expect(bytes.withUnsafeBytes { NIP19.nsec($0) } == nsec)
    #expect(throws: NIP19.Failure.bech32(.prefix(expected: "nsec1"))) {
      try NIP19.withSecretKey(nsec: npub) { (_) throws(Never) in }
    }
    #expect("\(NIP19.Failure.secretKey)".contains("nsec") == false)
  }

  @Test(arguments: [31, UInt64.random(in: 0...UInt64.max)])
  func `any bytes under a right checksum are an entity or an error`(seed: UInt64) {
    var generator = Generator(seed: seed)
    let prefixes = ["npub", "note", "nprofile", "nevent", "naddr", "nsec"]
    for _ in 0..<2000 {
      let length = generator.below(80)
      let data = (0..<length).map { index in
        index % 2 == 0 ? UInt8(generator.below(4)) : UInt8(truncatingIfNeeded: generator.next())
      }
      let text = Bech32.encode(prefix: prefixes[generator.below(prefixes.count)], data)
      guard let entity = try? NIP19.decode(text), let again = NIP19.encode(entity) else { continue }
      #expect((try? NIP19.decode(again)) == entity, "seed \(seed)")
    }
  }
}

struct Bech32Tests {
  private func failure(_ text: String) -> Bech32.Failure? {
    do throws(Bech32.Failure) {
      _ = try Bech32.decode(text)
      return nil
    } catch {
      return error
    }
  }

  @Test func `each way of being wrong has its name`() {
    #expect(failure(npub) == nil)
    #expect(failure(npub.uppercased()) == nil)
    #expect(failure("N" + npub.dropFirst()) == .mixedCase)
    #expect(failure("npub") == .missingSeparator)
    #expect(failure("1qqqqqqqq") == .missingSeparator)
    #expect(failure("npub1b" + npub.dropFirst(6)) == .invalidCharacter(at: 5))
    #expect(failure("npub1 " + npub.dropFirst(6)) == .invalidCharacter(at: 5))
    #expect(failure("npub1é") == .invalidCharacter(at: 5))
    #expect(failure(String(npub.dropLast()) + "q") == .checksum)
    #expect(failure("npub1qqqq") == .tooShort)
    #expect(failure("") == .missingSeparator)
    #expect(failure("n1" + String(repeating: "q", count: 5000)) == .tooLong)
  }

  @Test func `the last bits are zero`() throws {
    // One byte takes two characters, of which the last has two bits of padding.
    let good = Bech32.encode(prefix: "n", [0xff])
    #expect(try Bech32.decode(good).data == [0xff])
    // `a` sets the lower of the two, `7` the higher.
    #expect(failure(checksummed("n1la")) == .padding)
    #expect(failure(checksummed("n1l7")) == .padding)
    #expect(checksummed("n1l\(Array(good)[3])") == good)
  }

  /// Adds the checksum to a prefix `n` and data that `encode` would never write.
  private func checksummed(_ head: String) -> String {
    let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
    let data = head.utf8.dropFirst(2).compactMap { alphabet.firstIndex(of: $0) }.map { UInt32($0) }
    var sum: UInt32 = 1
    for value in [3, 0, 14] + data + [0, 0, 0, 0, 0, 0] {
      let top = sum >> 25
      sum = (sum & 0x1ff_ffff) << 5 ^ value
      for (bit, mask) in [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3]
        .enumerated() where top >> UInt32(bit) & 1 == 1
      {
        sum ^= UInt32(mask)
      }
    }
    let tail = (0..<6).map { alphabet[Int((sum ^ 1) >> UInt32(5 * (5 - $0)) & 31)] }
    return head + String(decoding: tail, as: UTF8.self)
  }
}

struct EventAddressTests {
  @Test func `an address is read as it is written`() {
    let address = EventAddress(kind: 30078, author: pubkey, identifier: "a:b")
    #expect(address.text == Text("30078:\(key):a:b"))
    #expect(EventAddress(address.text) == address)
    #expect(EventAddress(Text("10002:\(key):"))?.identifier == .empty)
  }

  @Test(arguments: [
    "30078:\(key)", "x:\(key):", "65536:\(key):", "+1:\(key):", ":\(key):",
    "30078:\(key.uppercased()):", "30078::a", "",
  ])
  func `anything else is no address`(text: String) { #expect(EventAddress(Text(text)) == nil) }
}
