import Nostr
import NostrCrypto
import SyncCore

/// NIP-42, and how Buzz tightens it.
extension RelayMachine {
  mutating func authenticate(_ event: Event, from id: ConnectionID) {
    guard let index = position(of: id) else { return }
    if rules.authentication.isOncePerSocket {
      if !connections[index].keys.isEmpty {
        return send(
          .ok(event.id, accepted: false, "auth-required: already authenticated"), to: id)
      }
      if connections[index].hasFailedAuthentication {
        return send(
          .ok(event.id, accepted: false, "auth-required: authentication already failed"), to: id)
      }
    }
    if let refusal = refusalOfAuthentication(event, on: connections[index]) {
      connections[index].hasFailedAuthentication = true
      send(.ok(event.id, accepted: false, refusal), to: id)
      if refusal.hasPrefix("blocked:") { close(id, code: 1008) }
      return
    }
    connections[index].keys.append(event.pubkey)
    connections[index].hasFailedAuthentication = false
    send(.ok(event.id, accepted: true, ""), to: id)
  }

  private func refusalOfAuthentication(_ event: Event, on connection: Connection) -> Text? {
    // Both tags are looked for by name and counted alone: two of one kind must not stand in for
    // one of each.
    let challenges = event.tags.values("challenge")
    let relays = event.tags.values("relay")
    guard event.kind == 22242, challenges.count == 1, relays.count == 1, isValid(event) else {
      return "invalid: not a valid auth event"
    }
    let checks = rules.authentication
    if checks.checksChallenge && challenges[0] != connection.challenge {
      return "restricted: wrong challenge"
    }
    if checks.checksHost && !isOwnAddress(relays[0]) {
      return "restricted: auth event is for a different relay"
    }
    if let age = checks.ageMax, isOutside(event.createdAt, past: age, future: age) {
      return "restricted: auth event is too old"
    }
    if checks.banned.contains(event.pubkey) {
      return "blocked: you are banned from this community"
    }
    if let members = checks.members, !members.contains(event.pubkey) {
      return "restricted: not a relay member"
    }
    return nil
  }

  func isOutside(_ time: Timestamp, past: Int64?, future: Int64?) -> Bool {
    if let past, time < now - past { return true }
    if let future, time > now + future { return true }
    return false
  }

  /// The key that signed an HTTP question (NIP-98); nil where nobody did, or not for this one.
  func signer(of question: ServedQuestion) -> PublicKey? {
    let scheme = Array("Nostr ".utf8)
    guard let header = question.authorization.map({ Array($0.utf8) }), header.starts(with: scheme),
      let json = Base64.decode(header.dropFirst(scheme.count)),
      let event = try? EventScanner.event(json), event.kind == .httpAuth, isValid(event),
      !isOutside(event.createdAt, past: 60, future: 60),
      event.tags.values("method") == ["POST"],
      event.tags.values("payload") == [Text(SHA256.hash(question.body).hex)]
    else { return nil }
    let addresses = identity.urls.map { Text(RelayQuestion.address(of: $0, path: question.path)) }
    let names = event.tags.values("u")
    guard names.count == 1, addresses.isEmpty || addresses.contains(names[0]),
      !rules.authentication.banned.contains(event.pubkey),
      rules.authentication.members?.contains(event.pubkey) ?? true
    else { return nil }
    return event.pubkey
  }

  private func isOwnAddress(_ text: Text) -> Bool {
    guard !identity.urls.isEmpty else { return true }
    guard let url = RelayURL(text.string) else { return false }
    return identity.urls.contains { own in
      own.port == url.port && own.isSecure == url.isSecure
        && (own.host == url.host || (own.isLoopback && url.isLoopback))
    }
  }
}
