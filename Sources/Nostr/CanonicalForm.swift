/// The bytes over which an event's id is computed (NIP-01), and tags as JSON for storage.
///
/// No general encoder may write these: one that escapes `/`, `&` or an emoji gives another id.
public enum CanonicalForm {
  /// Replaces what is in `buffer` by the preimage of the event's id.
  public static func writePreimage(of event: Event, form: IdForm, into buffer: inout [UInt8]) {
    write(
      event.pubkey, event.createdAt, event.kind, event.tags, event.content, form, into: &buffer)
  }

  /// Replaces what is in `buffer` by the preimage of the id that the draft will have.
  public static func writePreimage(
    of draft: EventDraft, author: PublicKey, into buffer: inout [UInt8]
  ) {
    write(
      author, draft.createdAt, draft.kind, draft.tags, draft.content, .standard, into: &buffer)
  }

  /// Tags as a JSON array of arrays of strings.
  public static func tagsJSON(_ tags: Tags) -> [UInt8] {
    var buffer: [UInt8] = []
    buffer.reserveCapacity(tags.packed.count * 2 + 2)
    buffer.appendTags(tags)
    return buffer
  }

  /// Reads back what `tagsJSON` wrote; nil for anything that is not tags.
  public static func tags(json: UnsafeRawBufferPointer) -> Tags? {
    var reader = JSONReader(json)
    do throws(ScanError) {
      let tags = try reader.tags()
      try reader.end()
      return tags
    } catch {
      return nil
    }
  }

  private static func write(
    _ author: PublicKey, _ createdAt: Timestamp, _ kind: EventKind, _ tags: Tags,
    _ content: Text, _ form: IdForm, into buffer: inout [UInt8]
  ) {
    buffer.removeAll(keepingCapacity: true)
    buffer.reserveCapacity(128 + tags.packed.count * 2 + content.count + content.count / 8)
    buffer.appendASCII("[0,")
    buffer.appendQuotedHex(author.bytes)
    buffer.append(0x2c)
    buffer.appendDecimal(createdAt.seconds)
    buffer.append(0x2c)
    buffer.appendDecimal(Int64(kind.number))
    buffer.append(0x2c)
    buffer.appendTags(tags, form: form)
    buffer.append(0x2c)
    buffer.appendString(content, form: form)
    buffer.append(0x5d)
  }
}

extension Event {
  /// Appends the event as it goes over the wire: NIP-01's keys in NIP-01's order, no space.
  ///
  /// The form of the id plays no part here: a reader decodes the strings before it hashes them.
  public func writeJSON(into buffer: inout [UInt8]) {
    buffer.appendASCII("{\"id\":")
    buffer.appendQuotedHex(id.bytes)
    buffer.appendASCII(",\"pubkey\":")
    buffer.appendQuotedHex(pubkey.bytes)
    buffer.appendASCII(",\"created_at\":")
    buffer.appendDecimal(createdAt.seconds)
    buffer.appendASCII(",\"kind\":")
    buffer.appendDecimal(Int64(kind.number))
    buffer.appendASCII(",\"tags\":")
    buffer.appendTags(tags)
    buffer.appendASCII(",\"content\":")
    buffer.appendString(content)
    buffer.appendASCII(",\"sig\":\"")
    sig.withUnsafeBytes { buffer.appendHex($0) }
    buffer.appendASCII("\"}")
  }

  public func json() -> [UInt8] {
    var buffer: [UInt8] = []
    buffer.reserveCapacity(400 + tags.packed.count * 2 + content.count + content.count / 8)
    writeJSON(into: &buffer)
    return buffer
  }
}
