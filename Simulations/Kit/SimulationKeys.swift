package import Nostr
import RelayServer
package import NostrCrypto

/// Keys and signatures that depend on names alone. None of them is a secret.
package enum SimulationKeys {
  package static func key(_ name: String) -> SecretKey {
    do {
      return try SecretKey(bytes: SHA256.hash(Array("skep simulation \(name)".utf8)).array)
    } catch {
      preconditionFailure("a hash outside the range of keys is never met: \(error)")
    }
  }

  package static func sign(_ draft: EventDraft, with key: SecretKey) -> Event {
    do {
      return try RelaySigner(key, entropy: NoEntropy()).sign(draft).event
    } catch {
      preconditionFailure("a draft of the simulation can be signed: \(error)")
    }
  }
}
