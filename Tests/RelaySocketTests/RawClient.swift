import Glibc

/// A TCP client that says exactly what a test wants said.
final class RawClient: Sendable {
  private let descriptor: Int32

  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    struct NotConnected: Error {}
    guard isConnected else { throw NotConnected() }
  }

  deinit { Glibc.close(descriptor) }

  func send(_ text: String) { RawConnection(descriptor: descriptor).write(text) }

  /// Everything that comes until the other side ends the connection, or says nothing for long.
  func rest() -> String {
    var patience = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while read(descriptor, &byte, 1) == 1 { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Sends a request and reads the answer to its body's end.
  func ask(_ request: String) -> String {
    send(request)
    let connection = RawConnection(descriptor: descriptor)
    let header = connection.readRequest()
    let length =
      header.lowercased().split(separator: "\r\n")
      .first { $0.hasPrefix("content-length:") }
      .flatMap { Int($0.dropFirst(15).filter { $0 != " " }) } ?? 0
    var body: [UInt8] = []
    var byte: UInt8 = 0
    while body.count < length, read(descriptor, &byte, 1) == 1 { body.append(byte) }
    return header + String(decoding: body, as: UTF8.self)
  }
}
