import Foundation
import Glibc
import Testing

/// What takes a connection and has nothing to say, over real sockets.
@Suite struct SilentRelayTests {
  enum Silence: String, CaseIterable {
    /// The connection is taken, and not one byte comes.
    case bare
    /// The WebSocket opens, and no message comes.
    case handshake
    /// The NIP-11 document comes, and nothing else.
    case document
  }

  /// Something that listens until the test ends.
  private struct Silent {
    let url: String
    let keptAlive: any Sendable

    init(_ silence: Silence) async throws {
      switch silence {
      case .handshake:
        let relay = try await ScriptedRelay { _ in [] }
        (url, keptAlive) = (relay.url, relay)
      case .bare, .document:
        let port = try PlainPort(
          answer: silence == .document
            ? #"{"name":"a document and no relay","supported_nips":[1,11,29]}"# : nil)
        (url, keptAlive) = (port.url, port)
      }
    }
  }

  private func expectUnreached(
    _ outcome: SkepProcess.Outcome, _ url: String, _ location: SourceLocation = #_sourceLocation
  ) throws {
    #expect(outcome.code == 3, "\(outcome.text) \(outcome.stderr)", sourceLocation: location)
    let told = try #require(try outcome.rows().last, sourceLocation: location)
    #expect(told["complete"] as? Bool == false, sourceLocation: location)
    let relays = try #require(told["relays"] as? [[String: Any]], sourceLocation: location)
    #expect(relays.map { $0["reached"] as? Bool } == [false], sourceLocation: location)
    #expect(outcome.stderr.contains(url), sourceLocation: location)
  }

  @Test(arguments: Silence.allCases, [[], ["--all"], ["--follow"]])
  func `a relay that says nothing is given up in the stated time`(
    silence: Silence, options: [String]
  ) async throws {
    let skep = try SkepProcess()
    let silent = try await Silent(silence)
    // Without the time that was set, the relay's own deadlines would end the run, and with 4.
    let outcome = try await skep.runAside(
      ["mirror", silent.url, "--fail-after", "4s", "--json"] + options)
    try expectUnreached(outcome, silent.url)
    if silence == .handshake {
      #expect(outcome.stderr.contains("connected, but answered nothing"), "\(outcome.stderr)")
    }
  }

  @Test func `joining and syncing are given up in the stated time too`() async throws {
    let skep = try SkepProcess()
    let silent = try await Silent(.bare)
    _ = try await skep.runAside("key", "new")
    let join = try await skep.runAside("join", silent.url, "--fail-after", "3s")
    #expect(join.code == 3, "\(join.stderr)")
    _ = try await skep.runAside("mirror", silent.url, "--fail-after", "1s")
    let sync = try await skep.runAside(
      "sync", "--community", silent.url, "--fail-after", "3s", "--json")
    #expect([3, 64].contains(sync.code), "\(sync.stderr)")
  }

  @Test func `a relay that answers in time has as long as it takes`() async throws {
    let skep = try SkepProcess()
    let relay = try await ScriptedRelay { frame in
      guard frame.first as? String == "REQ", let id = frame[1] as? String else { return [] }
      return [#"["EOSE","\#(id)"]"#]
    }
    let outcome = try await skep.runAside(
      "mirror", relay.url, "--all", "--fail-after", "60s", "--json")
    #expect(outcome.code == 0, "\(outcome.text) \(outcome.stderr)")
  }
}

/// A port that takes connections and answers requests for a document, or nothing at all.
private final class PlainPort: Sendable {
  let url: String
  private let descriptor: Int32

  /// - Parameter answer: The NIP-11 document, where there is one.
  init(answer: String?) throws {
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
    try #require(isListening)
    self.descriptor = descriptor
    url = "ws://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
    // Without an answer the kernel takes the connections, and nobody ever reads from them.
    guard let answer else { return }
    Thread.detachNewThread {
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread { Self.serve(connection, answer) }
      }
    }
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
  }

  private static func serve(_ connection: Int32, _ answer: String) {
    var request: [UInt8] = []
    var bytes = [UInt8](repeating: 0, count: 4096)
    while !request.suffix(4).elementsEqual([13, 10, 13, 10]) {
      let count = read(connection, &bytes, bytes.count)
      guard count > 0 else { break }
      request += bytes.prefix(count)
    }
    if String(decoding: request, as: UTF8.self).lowercased().contains("upgrade: websocket") {
      while read(connection, &bytes, bytes.count) > 0 {}
    } else {
      let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/nostr+json\r\n"
        + "Content-Length: \(answer.utf8.count)\r\nConnection: close\r\n\r\n"
      let whole = Array((head + answer).utf8)
      send(connection, whole, whole.count, Int32(MSG_NOSIGNAL))
    }
    close(connection)
  }
}
