import Nostr
import NostrCrypto
import Platform
import Testing

@Suite struct VerifierTests {
  private let verifier = Verifier()

  @Test(arguments: Vectors.wire)
  func `a wire line gets the verdict of its row`(line: Vectors.Line) {
    let result = line.bytes.withUnsafeBytes { bytes in
      Result { () throws(LineReject) in try verifier.scanAndVerify(bytes) }
    }
    switch result {
    case .success: #expect(line.isAccepted)
    case .failure(let reject):
      #expect(!line.isAccepted, "\(reject)")
      let opaque = ["content-swapped": "id", "sig-bitflip": "signature"]
      if let reason = opaque[line.name] { #expect(reject.reason == reason) }
    }
  }

  @Test func `every row of the contents is read`() { #expect(Vectors.contents.count >= 12) }

  @Test(arguments: Vectors.contents)
  func `an event has the id of the first form that gives it`(content: Vectors.Content) throws {
    let event = try #require(content.event)
    if let standard = content.id("stringify") { #expect(event.id == standard) }
    #expect(try verifier.verify(event).idForm == .standard)
  }

  @Test func `the bytes over which others hash an event are told apart`() throws {
    for (name, serialiser, form) in [
      ("esc", "verbatim", IdForm.rawControl), ("nul", "verbatim", .rawControl),
      ("del", "taocpp", .escapedDelete),
    ] as [(String, Text, IdForm)] {
      let content = try #require(Vectors.contents.first { $0.testDescription == name })
      let event = try #require(content.event)
      let id: EventID = try #require(content.id(serialiser))
      let other = event.with(id: id)
      // The vectors carry no signature over the other id: reaching it shows that the id was found.
      #expect(throws: VerifyFailure.signature) { try verifier.verify(other) }
      let signed = try Forged.signed(other, with: .small(3))
      #expect(try verifier.verify(signed).idForm == form)
    }
  }

  @Test(arguments: ["ascii", "html", "slash"] as [Text])
  func `an id over escapes that no rule knows is refused`(serialiser: Text) throws {
    var tried = 0
    for content in Vectors.contents {
      guard let event = content.event, let other = content.id(serialiser), other != event.id,
        other != content.id("verbatim"), other != content.id("taocpp")
      else { continue }
      tried += 1
      #expect(throws: VerifyFailure.id) { try verifier.verify(event.with(id: other)) }
    }
    #expect(tried > 0)
  }

  @Test func `a right id signed by another key is a bad signature`() throws {
    let mine = try LocalSigner(.small(1)).signed(.note("mine")).event
    let signed = try Forged.signed(mine, with: .small(2))
    #expect(throws: VerifyFailure.signature) { try verifier.verify(signed) }
    #expect(throws: Never.self) { try verifier.verify(mine) }
  }

  @Test func `an author that is no point on the curve is a bad signature`() throws {
    let key = try #require(Vectors.schnorr.first { $0.index == 5 }?.key)
    let event = try LocalSigner(.small(1)).signed(.note("hi")).event
    let forged = Forged.identified(event.with(pubkey: key))
    #expect(throws: VerifyFailure.signature) { try verifier.verify(forged) }
  }

  @Test func `content swapped under a valid signature fails by its id`() throws {
    let event = try LocalSigner(.small(1)).signed(.note("pay one")).event
    #expect(throws: VerifyFailure.id) { try verifier.verify(event.with(content: "pay two")) }
  }

  @Test(arguments: [1, 7, 8, 9, 200])
  func `a batch answers in the order asked, whatever runs it`(count: Int) async throws {
    let signers = try (1...9).map { LocalSigner(try .small($0)) }
    var events: [Event] = []
    for index in 0..<count {
      let event = try signers[index % 9].signed(.note(Text("message \(index)"))).event
      events.append(index % 5 == 3 ? event.with(content: "other") : event)
    }
    let inline = await verifier.verify(events, on: InlineWork())
    let pooled = await verifier.verify(events, on: WorkPool(width: 3))
    #expect(inline == pooled)
    #expect(inline.count == count)
    for (index, result) in inline.enumerated() {
      switch result {
      case .success(let verified): #expect(verified.event == events[index])
      case .failure(let failure): #expect(failure == .id && index % 5 == 3)
      }
    }
  }

  @Test func `an empty batch has no results`() async {
    #expect(await verifier.verify([], on: InlineWork()).isEmpty)
    #expect(await verifier.scanAndVerify([], lines: [], on: InlineWork()).isEmpty)
  }

  @Test func `lines of one buffer are scanned and verified in order`() async throws {
    var bytes: [UInt8] = []
    var lines: [Range<Int>] = []
    for line in Vectors.wire {
      lines.append(bytes.count..<bytes.count + line.bytes.count)
      bytes.append(contentsOf: line.bytes)
      bytes.append(0x0a)
    }
    let results = await verifier.scanAndVerify(bytes, lines: lines, on: WorkPool(width: 2))
    let accepted = results.map { (try? $0.get()) != nil }
    #expect(accepted == Vectors.wire.map(\.isAccepted))
  }

  @Test func `a huge event between small ones is verified like them`() throws {
    let signer = LocalSigner(try .small(4))
    let huge = Text(utf8: [UInt8](repeating: 0x61, count: 3 << 20))
    for content in ["before", huge, "after"] as [Text] {
      let event = try signer.signed(.note(content)).event
      #expect(throws: Never.self) { try verifier.verify(event) }
    }
  }

  @Test func `more authors than are kept change no verdict`() throws {
    let small = Verifier(authorsMax: 1)
    var events: [Event] = []
    for value in 1...255 as ClosedRange<UInt8> {
      events.append(try LocalSigner(try .small(value)).signed(.note("x")).event)
    }
    for event in events + events.reversed() {
      #expect(throws: Never.self) { try small.verify(event) }
    }
  }

  @Test func `the raw rate counts the signatures that hold`() async throws {
    let event = try LocalSigner(.small(1)).signed(.note("x")).event
    let other = try LocalSigner(.small(2)).signed(.note("x")).event
    let raw = RawVerification([event, event.with(sig: other.sig), other])
    #expect(raw.count == 3)
    #expect(await raw.run(on: WorkPool(width: 2)) == 2)
  }
}
