// What C calls `unsigned char *`. The libraries below take no null pointer where bytes are meant.

extension UnsafeRawBufferPointer {
  var octets: UnsafePointer<UInt8> {
    guard let start = baseAddress else { preconditionFailure("no bytes where some are needed") }
    return start.assumingMemoryBound(to: UInt8.self)
  }
}

extension UnsafeMutableRawBufferPointer {
  var octets: UnsafeMutablePointer<UInt8> {
    guard let start = baseAddress else { preconditionFailure("no room where some is needed") }
    return start.assumingMemoryBound(to: UInt8.self)
  }
}
