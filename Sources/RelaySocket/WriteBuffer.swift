import CWebSockets

/// A message on its way out, at an address that stays.
///
/// The library writes the frame's header in front of the bytes, masks them in place, and while it
/// compresses a large message it goes on reading them after `lws_write` has returned.
final class WriteBuffer: @unchecked Sendable {
  // Unchecked: filled before it is shared, then touched only on the service thread.
  let count: Int
  private let memory: UnsafeMutablePointer<UInt8>

  init(_ bytes: [UInt8]) {
    count = bytes.count
    let padding = skep_lws_pre()
    memory = .allocate(capacity: padding + bytes.count + 1)
    memory.initialize(repeating: 0, count: padding)
    bytes.withUnsafeBufferPointer { source in
      if let first = source.baseAddress {
        memory.advanced(by: padding).initialize(from: first, count: source.count)
      }
    }
  }

  deinit { memory.deallocate() }

  func write(to wsi: OpaquePointer, as kind: lws_write_protocol) -> Bool {
    lws_write(wsi, memory.advanced(by: skep_lws_pre()), count, kind) >= count
  }
}
