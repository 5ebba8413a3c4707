import Glibc
import SyncCore

/// A bound and listening TCP socket.
///
/// It is made here and not by the library: that one keeps a closed listener's port for seconds,
/// and says no reason when it cannot bind.
struct ListeningSocket: Sendable {
  let descriptor: Int32
  let port: UInt16

  /// - Parameter address: An IPv4 or IPv6 address as text.
  static func open(address: String, port: UInt16) throws(TransportError) -> ListeningSocket {
    let isSix = address.contains(":")
    let family = isSix ? AF_INET6 : AF_INET
    let descriptor = socket(
      family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw refusal(address, port) }
    // A port whose last connections still linger may be taken again.
    var yes: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    let bound = isSix ? bindSix(descriptor, address, port) : bindFour(descriptor, address, port)
    guard let bound, listen(descriptor, backlog) == 0 else {
      let error = refusal(address, port)
      Glibc.close(descriptor)
      throw error
    }
    return ListeningSocket(descriptor: descriptor, port: bound)
  }

  /// A connection that waits to be served, or nil.
  func accept() -> Int32? {
    let connection = Glibc.accept(descriptor, nil, nil)
    guard connection >= 0 else { return nil }
    _ = fcntl(connection, F_SETFL, O_NONBLOCK)
    _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
    // Each frame leaves at once: held back until the one before it is acknowledged, an answer of an
    // event and its EOSE would take as long as the other side delays its acknowledgements.
    var yes: Int32 = 1
    setsockopt(
      connection, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    return connection
  }

  /// Gives the port back at once, whoever still holds the descriptor.
  func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  private static let backlog: Int32 = 128

  private static func refusal(_ address: String, _ port: UInt16) -> TransportError {
    .refused("\(address):\(port) cannot be listened on: \(String(cString: strerror(errno)))")
  }

  private static func bindFour(_ descriptor: Int32, _ text: String, _ port: UInt16) -> UInt16? {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    guard inet_pton(AF_INET, text, &address.sin_addr) == 1,
      bindAny(descriptor, &address)
    else { return nil }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func bindSix(_ descriptor: Int32, _ text: String, _ port: UInt16) -> UInt16? {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    guard inet_pton(AF_INET6, text, &address.sin6_addr) == 1,
      bindAny(descriptor, &address)
    else { return nil }
    return UInt16(bigEndian: address.sin6_port)
  }

  /// Binds, and reads back the address with the port that was chosen.
  private static func bindAny<Address>(
    _ descriptor: Int32, _ address: inout Address
  ) -> Bool {
    var length = socklen_t(MemoryLayout<Address>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0
      }
    }
  }
}
