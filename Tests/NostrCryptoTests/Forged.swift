import Nostr

@testable import NostrCrypto

/// Events that no signer of ours would make.
enum Forged {
  /// `event` with a signature by `key` over the id it claims.
  static func signed(_ event: Event, with key: SecretKey) throws -> Event {
    let auxiliary = [UInt8](repeating: 7, count: 32)
    let signature = auxiliary.withUnsafeBytes { key.sign(event.id.bytes, auxiliary: $0) }
    guard let signature else { throw SignerError.unavailable("no signature") }
    return event.with(sig: signature)
  }

  /// `event` with the id that its fields give.
  static func identified(_ event: Event) -> Event {
    var buffer: [UInt8] = []
    CanonicalForm.writePreimage(of: event, form: .standard, into: &buffer)
    return event.with(id: EventID(SHA256.hash(buffer)))
  }
}
