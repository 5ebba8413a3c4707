import Nostr

private let prefixes = ["npub", "note", "nprofile", "nevent", "naddr", "nsec", "nother"]

/// Text that people paste is an entity, an address, a link or an error. The input serves twice: as
/// the text, and as the data under a right checksum, which no mutation would ever find.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzNIP19(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  let text = String(decoding: bytes, as: UTF8.self)
  check(text)
  if let first = bytes.first {
    check(Bech32.encode(prefix: prefixes[Int(first) % prefixes.count], bytes.dropFirst()))
  }
  if let relay = RelayURL(text) {
    precondition(RelayURL(relay.description) == relay, "an address reads back as written")
  }
  if let link = DeepLink(text) {
    precondition(DeepLink(link.text) == link, "a link reads back as written")
  }
  _ = InviteLink(text)?.expiryHint
  if let address = EventAddress(Text(text)) {
    precondition(EventAddress(address.text) == address, "an address reads back as written")
  }
  return 0
}

private func check(_ text: String) {
  do throws(NIP19.Failure) {
    let reference = try NIP19.reference(text)
    guard let uri = NIP19.uri(reference) else { return }
    precondition((try? NIP19.reference(uri)) == reference, "an entity reads back as written")
  } catch {
    _ = error.description
  }
}
