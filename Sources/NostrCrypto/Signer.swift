public import Nostr

/// Why a signer did not do what it was asked.
public enum SignerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Only the relay may sign this kind; clients that did would forge group state.
  case relaySigned(EventKind)
  /// A NUL byte in the content or a tag: it passes every check, and then relays lose the event.
  case containsNUL(NULPlace)
  case encryption(NIP44Error)
  /// The key is elsewhere and cannot be reached now, or the library failed; the reason in words.
  case unavailable(String)

  public var description: String {
    switch self {
    case .relaySigned(let kind): "events of kind \(kind) are signed by the relay, not by a person"
    case .containsNUL(.content(let offset)): "the text has a NUL at byte \(offset)"
    case .containsNUL(.tag(let index, let offset)):
      "tag \(index) has a NUL at byte \(offset) of an element"
    case .encryption(let error): error.description
    case .unavailable(let reason): "the signer is not available: \(reason)"
    }
  }
}

/// Where a NUL byte stands.
public enum NULPlace: Hashable, Sendable {
  case content(offset: Int)
  case tag(index: Int, offset: Int)
}

/// Whoever holds an author's key: this process, or something that it talks to.
public protocol Signer: Sendable {
  func publicKey() async throws(SignerError) -> PublicKey

  /// Gives the draft its author, id and signature. Refuses the kinds that only a relay signs.
  func sign(_ draft: EventDraft) async throws(SignerError) -> VerifiedEvent

  /// Encrypts to the author's own key (NIP-44).
  func encryptToSelf(_ text: Text) async throws(SignerError) -> Text

  func decryptFromSelf(_ payload: Text) async throws(SignerError) -> Text
}

/// A signer whose key is in this process.
public struct LocalSigner: Signer {
  private let key: SecretKey
  private let entropy: any Entropy

  public init(_ key: SecretKey, entropy: any Entropy = SystemEntropy()) {
    self.key = key
    self.entropy = entropy
  }

  public func publicKey() async throws(SignerError) -> PublicKey { key.publicKey }

  public func sign(_ draft: EventDraft) async throws(SignerError) -> VerifiedEvent {
    try signed(draft)
  }

  /// `sign` for callers that cannot wait.
  public func signed(_ draft: EventDraft) throws(SignerError) -> VerifiedEvent {
    guard !draft.kind.isRelaySigned else { throw .relaySigned(draft.kind) }
    if let place = draft.firstNUL { throw .containsNUL(place) }
    return try seal(draft, with: key, entropy: entropy)
  }

  public func encryptToSelf(_ text: Text) async throws(SignerError) -> Text {
    do throws(NIP44Error) {
      return try NIP44.encrypt(text, with: try conversationWithSelf(), entropy: entropy)
    } catch {
      throw .encryption(error)
    }
  }

  public func decryptFromSelf(_ payload: Text) async throws(SignerError) -> Text {
    do throws(NIP44Error) {
      return try NIP44.decrypt(payload, with: try conversationWithSelf())
    } catch {
      throw .encryption(error)
    }
  }

  private func conversationWithSelf() throws(NIP44Error) -> ConversationKey {
    try NIP44.conversationKey(secret: key, public: key.publicKey)
  }
}

/// The key with which a relay signs what it says itself: group state, membership, notices.
public struct RelaySigner: Sendable {
  private let key: SecretKey
  private let entropy: any Entropy

  public init(_ key: SecretKey, entropy: any Entropy = SystemEntropy()) {
    self.key = key
    self.entropy = entropy
  }

  public var publicKey: PublicKey { key.publicKey }

  public func sign(_ draft: EventDraft) throws(SignerError) -> VerifiedEvent {
    try seal(draft, with: key, entropy: entropy)
  }
}

/// Makes an event of a draft and checks its own work: a fault while signing could give a signature
/// that does not verify, or one that gives the key away.
private func seal(
  _ draft: EventDraft, with key: SecretKey, entropy: any Entropy
) throws(SignerError) -> VerifiedEvent {
  let id = EventHash.id(of: draft, author: key.publicKey)
  // Fresh for every signature, so signing the same id twice gives two different ones.
  let auxiliary = entropy.bytes(32)
  let signature = auxiliary.withUnsafeBytes { key.sign(id.bytes, auxiliary: $0) }
  guard let signature, var author = Curve.shared.parse(key.publicKey),
    Curve.shared.isValid(signature, over: id.bytes, by: &author)
  else { throw .unavailable("libsecp256k1 gave no valid signature") }
  let event = Event(
    id: id, pubkey: key.publicKey, createdAt: draft.createdAt, kind: draft.kind,
    tags: draft.tags, content: draft.content, sig: signature)
  return VerifiedEvent(vouchedFor: event, idForm: .standard)
}

extension EventDraft {
  fileprivate var firstNUL: NULPlace? {
    if let offset = content.offsetOfNUL { return .content(offset: offset) }
    for (index, tag) in tags.enumerated() {
      for element in tag {
        if let offset = element.offsetOfNUL { return .tag(index: index, offset: offset) }
      }
    }
    return nil
  }
}

extension Text {
  fileprivate var offsetOfNUL: Int? { utf8.firstIndex(of: 0).map { $0 - utf8.startIndex } }
}
