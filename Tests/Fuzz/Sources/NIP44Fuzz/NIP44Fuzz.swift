import Nostr
@_spi(Testing) import NostrCrypto

// The first byte says what the rest is: a payload as it came, or what a sender who holds the key
// put inside one. Without the second the MAC would keep the fuzzer out of everything behind it.

private let key: ConversationKey = {
  do {
    let secret = try SecretKey(bytes: [UInt8](repeating: 1, count: 32))
    return try NIP44.conversationKey(secret: secret, public: secret.publicKey)
  } catch {
    preconditionFailure("the fuzzer's key is not one: \(error)")
  }
}()
private let nonce = [UInt8](repeating: 2, count: 32)

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  guard count > 0 else { return 0 }
  let rest = Array(UnsafeBufferPointer(start: start, count: count).dropFirst())
  if start[0] & 1 == 0 {
    // A `Text` is UTF-8 by promise; wire text has been checked before it gets here.
    guard String(validating: rest, as: UTF8.self) != nil else { return 0 }
    _ = try? NIP44.decrypt(Text(utf8: rest), with: key)
    compose(rest)
  } else if !rest.isEmpty {
    openSealed(rest)
  }
  return 0
}

/// Whatever stands inside a payload, opening it gives text or an error, and text goes back in.
private func openSealed(_ padded: [UInt8]) {
  let payload = NIP44.seal(padded, with: key, nonce: nonce)
  guard let text = try? NIP44.decrypt(payload, with: key) else { return }
  precondition(!text.isEmpty, "nothing was decrypted")
  precondition(String(validating: text.utf8, as: UTF8.self) != nil, "not UTF-8")
  guard text.count < 65536 else { return }
  guard let again = try? NIP44.encrypt(text, with: key) else {
    preconditionFailure("text that was decrypted cannot be encrypted")
  }
  precondition(again.count == payload.count, "one text has two lengths")
  precondition((try? NIP44.decrypt(again, with: key)) == text, "another text came back")
}

/// Composed text holds no control character but tab and line feed, and composing it again changes
/// nothing.
private func compose(_ bytes: [UInt8]) {
  guard let composed = try? ComposedText(utf8: bytes) else { return }
  for scalar in composed.text.string.unicodeScalars where scalar != "\t" && scalar != "\n" {
    precondition(scalar.properties.generalCategory != .control, "a control character came through")
  }
  precondition((try? ComposedText(composed.text)) == composed, "composing twice differs")
}
