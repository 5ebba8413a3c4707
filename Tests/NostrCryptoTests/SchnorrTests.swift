import CSecp256k1
import Nostr
import Testing

@testable import NostrCrypto

@Suite struct SchnorrTests {
  @Test func `every row of the table is read`() {
    #expect(Vectors.schnorr.map(\.index) == Array(0...14))
    #expect(Vectors.schnorr.filter(\.isValid).count == 5)
  }

  @Test(arguments: Vectors.schnorr)
  func `a signature gets the verdict of its row`(vector: Vectors.Schnorr) {
    var isValid = false
    let key = Curve.shared.parse(vector.key)
    if var key, let signature = vector.signature, let message = vector.message {
      isValid = Curve.shared.isValid(signature, over: message, by: &key)
    }
    #expect(isValid == vector.isValid)
    #expect((key == nil) == [5, 14].contains(vector.index))
  }

  @Test(arguments: Vectors.schnorr.filter { !$0.secret.isEmpty })
  func `the same auxiliary bytes give the signature of the row`(vector: Vectors.Schnorr) throws {
    let key = try SecretKey(bytes: vector.secret)
    #expect(key.publicKey == vector.key)
    let message = try #require(vector.message)
    let signature = vector.auxiliary.withUnsafeBytes { key.sign(message, auxiliary: $0) }
    #expect(signature == vector.signature)
  }

  @Test func `a call with an argument that the library refuses says no and goes on`() throws {
    let key = try SecretKey.small(1)
    let short = [UInt8](repeating: 1, count: 31)
    #expect(short.withUnsafeBytes { key.sign(.zero, auxiliary: $0) } == nil)
    // A zeroed key is what the library's default callback aborts on.
    var zeroed = Curve.XOnlyKey()
    let sig: Signature = try #require(Vectors.schnorr.first?.signature)
    #expect(!Curve.shared.isValid(sig, over: .zero, by: &zeroed))
  }
}
