import Foundation
import Glibc
import Nostr
import SyncCore
import Testing

@testable import RelaySocket

/// A TLS server of OpenSSL's with a certificate that it signed itself for `localhost`.
///
/// It answers every request with a page, so a client that got as far as the answer to its upgrade
/// was content with the certificate.
private final class TLSServer {
  let port: UInt16
  let certificate: String
  private let process = Process()
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "skep-tls-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificate = folder.appending(path: "certificate.pem").path
    let key = folder.appending(path: "key.pem").path
    let maker = Process()
    maker.executableURL = URL(filePath: "/usr/bin/env")
    maker.arguments = [
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
      "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
      "-addext", "subjectAltName=DNS:localhost",
    ]
    maker.standardError = FileHandle.nullDevice
    try maker.run()
    maker.waitUntilExit()

    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, "-www",
    ]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // It names the port that it was given in a line like `ACCEPT 127.0.0.1:41234`.
    var text = ""
    while !(text.contains("ACCEPT") && text.hasSuffix("\n")) {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { break }
      text += String(decoding: data, as: UTF8.self)
    }
    let line = text.split(separator: "\n").first { $0.hasPrefix("ACCEPT") }
    port = try #require(line?.split(separator: ":").last.flatMap { UInt16($0) })
  }

  deinit {
    // Not `terminate`: a child of a test's thread inherits that thread's blocked signals.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    // Losing the scratch folder's removal costs nothing but the folder.
    try? FileManager.default.removeItem(at: folder)
  }
}

@Suite struct TLSTests {
  private func open(_ host: String, port: UInt16, trusting file: String?) async throws
    -> TransportError?
  {
    let service = SocketService(certificateAuthorityFile: file)
    let url = try #require(RelayURL("wss://\(host):\(port)"))
    return await failure {
      _ = try await SocketTransport(service: service).open(url, frameBytesMax: 1000)
    }
  }

  @Test func `a certificate counts only from a trusted authority and for the name asked`()
    async throws
  {
    let server = try TLSServer()
    let trusted = try await open("localhost", port: server.port, trusting: server.certificate)
    guard case .notWebSocket = trusted else { return #expect(trusted == .notWebSocket("…")) }

    let unknown = try await open("localhost", port: server.port, trusting: nil)
    guard case .tls = unknown else { return #expect(unknown == .tls("…")) }

    let other = try await open("127.0.0.1", port: server.port, trusting: server.certificate)
    guard case .tls = other else { return #expect(other == .tls("…")) }
  }

  @Test func `a server that speaks no TLS is told as such`() async throws {
    let server = try RawServer { connection in
      connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
      connection.waitForEnd()
    }
    let error = try await open("localhost", port: server.port, trusting: nil)
    guard case .tls = error else { return #expect(error == .tls("…")) }
  }
}
