import Glibc
import SyncCore
import Testing

@testable import RelaySocket

/// Small frames are not held back until the one before them is acknowledged.
@Suite struct DelayTests {
  @Test func `neither end of a connection waits for acknowledgements before it sends`() async throws
  {
    let pair = try await SocketPair()
    let ends = Self.connections(with: pair.listener.port)
    #expect(ends.map(\.isServer).sorted { !$0 && $1 } == [false, true])
    for end in ends { #expect(end.isUndelayed, "\(end.isServer ? "server" : "client")") }
    _ = (pair.client, pair.server)
  }

  /// The sockets of this process that are connected with one of its ports.
  private static func connections(with port: UInt16) -> [(isServer: Bool, isUndelayed: Bool)] {
    (Int32(0)..<4096).compactMap { descriptor in
      guard let peer = Self.port(of: descriptor, getpeername),
        let own = Self.port(of: descriptor, getsockname), peer == port || own == port
      else { return nil }
      var value: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      let code = getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &value, &length)
      return (own == port, code == 0 && value != 0)
    }
  }

  private static func port(
    of descriptor: Int32,
    _ ask: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
  ) -> UInt16? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask(descriptor, $0, &length) }
    }
    guard code == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
    return UInt16(bigEndian: address.sin_port)
  }
}
