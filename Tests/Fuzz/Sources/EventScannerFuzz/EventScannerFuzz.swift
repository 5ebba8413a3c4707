import Nostr

/// Any bytes are an event or a reason; an event is a fixed point of writing and reading; and two
/// readers that walk the text differently agree about what is JSON.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzEventScanner(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  do throws(ScanError) {
    let event = try EventScanner.event(bytes)
    var buffer: [UInt8] = []
    for form in IdForm.allCases {
      CanonicalForm.writePreimage(of: event, form: form, into: &buffer)
    }
    precondition((try? EventScanner.event(event.json())) == event, "an event reads back as written")
    let tags = CanonicalForm.tagsJSON(event.tags)
    let again = tags.withUnsafeBytes { CanonicalForm.tags(json: $0) }
    precondition(again == event.tags, "tags read back as written")
    _ = (event.group, event.identifier, event.threadPosition)
    precondition(isObject(bytes) != false, "an event is JSON")
  } catch .json {
    precondition(isObject(bytes) != true, "what is no event for its JSON is not JSON")
  } catch {
    precondition(isObject(bytes) != false, "what is no event for another reason is JSON")
  }
  return 0
}

/// Nil where the general reader stops at its own bound on depth.
private func isObject(_ bytes: UnsafeRawBufferPointer) -> Bool? {
  do throws(ScanError) {
    let value = try JSONValue.parse(bytes)
    precondition((try? JSONValue.parse(value.json())) == value, "a value reads back as written")
    return value.members != nil
  } catch .json(_, let why) {
    return why == "nested too deeply" ? nil : false
  } catch {
    return false
  }
}
