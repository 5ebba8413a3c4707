import Glibc
import Platform

/// A TCP server that says exactly what a test wants said. It lives as long as the process: a test
/// often keeps nothing of it but its port.
final class RawServer: Sendable {
  let port: UInt16
  private let acceptedCount = Lock(0)

  /// Connections accepted so far.
  var accepted: Int { acceptedCount.withLock { $0 } }

  /// - Parameter talk: Runs on a thread of its own for each connection; the connection is closed
  ///   when it returns.
  init(_ talk: @escaping @Sendable (RawConnection) -> Void) throws {
    let listening = try Self.listening()
    port = listening.port
    startThread { [acceptedCount] in
      while true {
        let connection = accept(listening.descriptor, nil, nil)
        guard connection >= 0 else { return }
        acceptedCount.withLock { $0 += 1 }
        startThread {
          talk(RawConnection(descriptor: connection))
          Glibc.close(connection)
        }
      }
    }
  }

  /// A port where nobody listens.
  static func portOfNobody() throws -> UInt16 {
    let listening = try listening()
    Glibc.close(listening.descriptor)
    return listening.port
  }

  private static func listening() throws -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        bind(descriptor, generic, length) == 0 && Glibc.listen(descriptor, 64) == 0
          && getsockname(descriptor, generic, &length) == 0
      }
    }
    struct NotListening: Error {}
    guard isListening else { throw NotListening() }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }
}

/// One accepted connection, read and written with blocking calls.
struct RawConnection: Sendable {
  let descriptor: Int32

  /// Reads to the end of an HTTP request; empty at the end of the stream.
  func readRequest() -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]), read(descriptor, &byte, 1) == 1 {
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  func write(_ text: String) { write(Array(text.utf8)) }

  func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Returns when the other side has sent something, by which it shows that its link is open.
  func waitForSomething() {
    var bytes = [UInt8](repeating: 0, count: 4096)
    _ = read(descriptor, &bytes, bytes.count)
  }

  /// Returns when the other side has closed.
  func waitForEnd() {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while read(descriptor, &bytes, bytes.count) > 0 {}
  }

  /// Returns when the other side has gone, without reading what it sent.
  func waitForHangUp() {
    // POLLRDHUP, which the module lacks.
    var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
    poll(&entry, 1, -1)
  }

  /// Answers the upgrade as RFC 6455 wants it.
  func upgrade() {
    let request = readRequest()
    let key =
      request.split(separator: "\r\n")
      .first { $0.lowercased().hasPrefix("sec-websocket-key:") }?
      .dropFirst("sec-websocket-key:".count).filter { $0 != " " } ?? ""
    let digest = SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
    write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: \(base64(digest))\r\n\r\n")
  }

  /// One unmasked frame.
  func writeFrame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) {
    var frame = [opcode | (isFinal ? 0x80 : 0)]
    if payload.count < 126 {
      frame.append(UInt8(payload.count))
    } else if payload.count < 65_536 {
      frame += [126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    } else {
      frame.append(127)
      frame += (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
    }
    write(frame + payload)
  }

  /// Ends the connection with a reset.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}

private func base64(_ bytes: [UInt8]) -> String {
  let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  var text = ""
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
    for place in 0..<4 {
      text.append(place <= group.count ? letters[bits >> (18 - 6 * place) & 63] : "=")
    }
  }
  return text
}

/// SHA-1, which only the WebSocket handshake still asks for.
private enum SHA1 {
  static func hash(_ message: [UInt8]) -> [UInt8] {
    var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
    var bytes = message + [0x80]
    while bytes.count % 64 != 56 { bytes.append(0) }
    bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: (message.count * 8) >> ($0 * 8)) }
    for start in stride(from: 0, to: bytes.count, by: 64) {
      var words = stride(from: start, to: start + 64, by: 4).map { at in
        bytes[at..<at + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      }
      for index in 16..<80 {
        words.append(
          rotate(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1))
      }
      var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
      for (index, word) in words.enumerated() {
        let (mix, constant): (UInt32, UInt32) =
          switch index {
          case ..<20: (b & c | ~b & d, 0x5a82_7999)
          case ..<40: (b ^ c ^ d, 0x6ed9_eba1)
          case ..<60: (b & c | b & d | c & d, 0x8f1b_bcdc)
          default: (b ^ c ^ d, 0xca62_c1d6)
          }
        (a, b, c, d, e) = (rotate(a, 5) &+ mix &+ e &+ constant &+ word, a, rotate(b, 30), c, d)
      }
      state = zip(state, [a, b, c, d, e]).map { $0 &+ $1 }
    }
    return state.flatMap { word in
      (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
  }

  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word << count | word >> (32 - count)
  }
}
