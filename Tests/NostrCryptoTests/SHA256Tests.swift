import Nostr
import NostrCrypto
import Testing

@Suite struct SHA256Tests {
  private let ofABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  private let ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

  @Test func `the published digests come out`() {
    #expect(SHA256.hash(Array("abc".utf8)).hex == ofABC)
    #expect(SHA256.hash([]).hex == ofNothing)
  }

  @Test func `pieces give the digest of the whole, and a finished stream starts anew`() {
    let stream = SHA256Stream()
    stream.update("a".utf8)
    stream.update([])
    stream.update("bc".utf8)
    #expect(stream.finish().hex == ofABC)
    #expect(stream.finish().hex == ofNothing)
  }
}
