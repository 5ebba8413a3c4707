import Nostr

/// Any bytes are a message or a typed error, on either side of the wire, and a message is a fixed
/// point of writing and reading.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRelayMessage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  do throws(FrameError) {
    let message = try RelayMessage.parse(bytes)
    precondition((try? RelayMessage.parse(message.json())) == message, "a message reads back")
  } catch {
    _ = error.description
  }
  do throws(FrameError) {
    let message = try ClientMessage.parse(bytes)
    precondition((try? ClientMessage.parse(message.json())) == message, "a message reads back")
  } catch {
    _ = error.description
  }
  do throws(FilterError) {
    let filter = try Filter(json: bytes)
    precondition((try? Filter(json: filter.json())) == filter, "a filter reads back")
    precondition(filter.canonical.canonical == filter.canonical, "canonical is a fixed point")
  } catch {
    _ = error.description
  }
  return 0
}
