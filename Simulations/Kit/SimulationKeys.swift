package import Nostr
import RelayServer
package import NostrCrypto
import Platform

/// Keys and signatures that depend on names alone. None of them is a secret.
package enum SimulationKeys {
  package static func key(_ name: String) -> SecretKey {
    do {
      return try SecretKey(bytes: secretBytes(name))
    } catch {
      preconditionFailure("a hash outside the range of keys is never met: \(error)")
    }
  }

  static func secretBytes(_ name: String) -> [UInt8] {
    SHA256.hash(Array("skep simulation \(name)".utf8)).array
  }

  private static let signed = Lock<[Signing: Event]>([:])
  private static let signedMax = 100_000

  private struct Signing: Hashable {
    let draft: EventDraft
    let author: PublicKey
  }

  /// The same draft and key give the same event; many worlds begin with the same history, so what
  /// was signed is remembered.
  package static func sign(_ draft: EventDraft, with key: SecretKey) -> Event {
    let signing = Signing(draft: draft, author: key.publicKey)
    if let known = signed.withLock({ $0[signing] }) { return known }
    do {
      let event = try RelaySigner(key, entropy: NoEntropy()).sign(draft).event
      signed.withLock { known in
        if known.count >= signedMax { known.removeAll() }
        known[signing] = event
      }
      return event
    } catch {
      preconditionFailure("a draft of the simulation can be signed: \(error)")
    }
  }
}
