package import Nostr
package import NostrCrypto

/// Who the relay is: what its NIP-11 document says, and the key with which it signs.
package struct RelayIdentity: Sendable {
  package var name: Text
  package var about: Text
  /// Every address under which clients may know this relay; an AUTH event must name one of them.
  /// Empty where the relay cannot know: then no address is checked.
  package var urls: [RelayURL]
  /// Signs group state and notices; nil for a relay that signs nothing, such as a replica.
  package var signer: RelaySigner?
  /// NIP-11's `self`: the signer's key, or at a replica the key of the relay that was copied.
  package var selfKey: PublicKey?
  package var software: Text
  package var version: Text

  package init(
    name: Text, about: Text = "", urls: [RelayURL] = [], signer: RelaySigner? = nil,
    selfKey: PublicKey? = nil, software: Text = "skep", version: Text = "0"
  ) {
    self.name = name
    self.about = about
    self.urls = urls
    self.signer = signer
    self.selfKey = selfKey ?? signer?.publicKey
    self.software = software
    self.version = version
  }
}

extension RelayMachine {
  /// Takes the address that is listened on for its own, where it was given none.
  package mutating func nameAddress(host: String, port: UInt16) {
    let isAny = host == "0.0.0.0" || host == "::" || host == "*"
    guard identity.urls.isEmpty, !isAny else { return }
    let name = host.contains(":") ? "[\(host)]" : host
    identity.urls = [RelayURL("ws://\(name):\(port)")].compactMap { $0 }
  }

  /// The NIP-11 document as the rules make it.
  package var document: [UInt8] {
    var limitation: [(Text, JSONValue)] = [
      ("max_message_length", .int(rules.limits.frameBytesMax)),
      ("max_subscriptions", .int(rules.limits.subscriptionsMax)),
      ("max_filters", .int(rules.limits.filtersMax)),
      ("max_limit", .int(rules.limits.advertisedPageMax ?? rules.reading.pageMax)),
      ("max_subid_length", .int(rules.limits.subscriptionIDBytesMax)),
      ("max_event_tags", .int(rules.writing.tagsMax)),
      ("max_content_length", .int(rules.writing.contentBytesMax)),
      ("auth_required", .bool(rules.authentication.isNeededToRead)),
      ("restricted_writes", .bool(rules.writing.isReplica || rules.authentication.members != nil)),
    ]
    if let age = rules.writing.ageMax { limitation.append(("created_at_lower_limit", .int(age))) }
    if let lead = rules.writing.leadMax {
      limitation.append(("created_at_upper_limit", .int(lead)))
    }
    var members: [(Text, JSONValue)] = [
      ("name", .string(identity.name)), ("description", .string(description)),
      ("software", .string(identity.software)), ("version", .string(identity.version)),
      ("supported_nips", .array(supportedNIPs.map { .int($0) })),
      ("limitation", .object(limitation)),
    ]
    let extensions = supportedExtensions
    if !extensions.isEmpty {
      members.append(("supported_extensions", .array(extensions.map { .string($0) })))
    }
    if let key = identity.selfKey { members.append(("self", .string(Text(key.hex)))) }
    return JSONValue.object(members).json()
  }

  private var description: Text {
    guard rules.writing.isReplica else { return identity.about }
    return Text("A read-only replica. \(identity.about)")
  }

  private var supportedExtensions: [Text] {
    var extensions: [Text] = []
    if rules.reading.servesKeysetCursor { extensions.append("before_id") }
    if rules.reading.windows != .unserved { extensions.append("channel_window") }
    return extensions
  }

  private var supportedNIPs: [Int] {
    var nips = [1, 9, 11, 40]
    if rules.groups.areManaged { nips.append(29) }
    if rules.authentication.challenges { nips.append(42) }
    if rules.reading.counting != .unsupported { nips.append(45) }
    if rules.answers.hints { nips.append(67) }
    if !rules.writing.isReplica { nips.append(70) }
    if case .served = rules.reading.reconciliation { nips.append(77) }
    return nips.sorted()
  }
}
