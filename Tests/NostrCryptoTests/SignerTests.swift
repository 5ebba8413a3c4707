import Nostr
import Testing

@testable import NostrCrypto

@Suite struct SignerTests {
  @Test func `a signed draft keeps its fields and verifies`() async throws {
    let key = try SecretKey.small(5)
    let tags = Tags([["h", "room"], ["p", key.publicKey.hex]])
    let draft = EventDraft(createdAt: 1_700_000_001, kind: 9, tags: tags, content: "grüße 🐝")
    let verified = try await LocalSigner(key).sign(draft)
    let event = verified.event
    #expect(event.pubkey == key.publicKey)
    #expect(event.createdAt == draft.createdAt && event.kind == draft.kind)
    #expect(event.tags == tags && event.content == draft.content)
    #expect(verified.idForm == .standard)
    #expect(try Verifier().verify(event) == verified)
  }

  @Test func `the reference ids come out`() throws {
    let author = try #require(
      PublicKey(hex: "6e468422dfb74a5738702a8823b9b28168abab8655faacb6853cd0ee15deee93"))
    let drafts: [(EventDraft, String)] = [
      (
        EventDraft(createdAt: 1_673_347_337, kind: 1, tags: .none, content: "Hello"),
        "63966d99a69e83b30f771d8b0079ff1d09290a838c1e4c8781db779cb6516cc9"
      ),
      (
        EventDraft(
          createdAt: 1_700_000_000, kind: 9,
          tags: Tags([["h", "channel-uuid-1"], ["e", "abc123", "", "reply"]]), content: "hi there"),
        "e12dbea4e81b6578e7e9dcd735c1a00a2a07adcc41dd889f5c8f96d820c5ecda"
      ),
      (
        .note("quote:\" back:\\ nl:\n tab:\t emoji:🐝 unicode:é"),
        "b15adc1518241c3d39ddbc122dfcaf1ad702ede050feb1e6a6a2027cf215b109"
      ),
    ]
    for (draft, id) in drafts { #expect(EventHash.id(of: draft, author: author).hex == id) }
  }

  @Test func `signing twice gives two signatures of one id`() async throws {
    let signer = LocalSigner(try .small(5))
    let first = try await signer.sign(.note("twice")).event
    let second = try await signer.sign(.note("twice")).event
    #expect(first.id == second.id)
    #expect(first.sig != second.sig)
  }

  @Test func `the same chance gives the same signature`() throws {
    let signer = LocalSigner(try .small(5), entropy: SeededEntropy(seed: 1))
    #expect(try signer.signed(.note("x")) == signer.signed(.note("x")))
  }

  @Test(arguments: [39000, 39001, 39002, 39003, 13534, 44100, 44101] as [EventKind])
  func `what the relay signs is refused to a person and signed for a relay`(kind: EventKind) throws
  {
    let key = try SecretKey.small(5)
    let draft = EventDraft.note("", kind: kind, tags: Tags([["d", "room"]]))
    #expect(throws: SignerError.relaySigned(kind)) { try LocalSigner(key).signed(draft) }
    let verified = try RelaySigner(key).sign(draft)
    #expect(verified.event.pubkey == key.publicKey)
    #expect(try Verifier().verify(verified.event) == verified)
  }

  @Test(
    arguments: [
      0, 1, 7, 9, 9000, 9005, 9007, 9021, 9022, 22242, 24242, 27235, 30078, 9734, 1984,
    ] as [EventKind])
  func `requests and everything of one's own are signed`(kind: EventKind) throws {
    #expect(throws: Never.self) { try LocalSigner(.small(5)).signed(.note("x", kind: kind)) }
  }

  @Test func `a NUL is refused with its place`() throws {
    let signer = LocalSigner(try .small(5))
    let draft = EventDraft.note("a\0b")
    #expect(throws: SignerError.containsNUL(.content(offset: 1))) { try signer.signed(draft) }
    let tagged = EventDraft.note("ab", tags: Tags([["h", "r"], ["p", "x", "ab\0"]]))
    #expect(throws: SignerError.containsNUL(.tag(index: 1, offset: 2))) {
      try signer.signed(tagged)
    }
    #expect(throws: Never.self) { try signer.signed(.note("ab", tags: Tags([["h", "r"]]))) }
  }

  @Test func `what is encrypted to oneself comes back`() async throws {
    let signer = LocalSigner(try .small(5))
    let payload = try await signer.encryptToSelf("read up to here")
    #expect(!payload.string.contains("read"))
    #expect(try await signer.decryptFromSelf(payload) == "read up to here")
    let other = LocalSigner(try .small(6))
    await #expect(throws: SignerError.encryption(.mac)) {
      try await other.decryptFromSelf(payload)
    }
  }
}
