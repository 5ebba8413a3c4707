import Nostr
import Platform
import RelayServer
import RelaySocket
import SyncCore

/// Runs a relay machine on a real socket until a signal comes: what `serve` and `demo-relay` share.
struct RelayServing {
  static let listen = OptionSpec.value(
    "listen", "ADDR:PORT", "where to listen; port 0 takes a free one")

  let host: String
  let port: UInt16

  /// Reads `--listen`.
  init(_ context: Context) throws {
    guard let word = context.invocation.value("listen") else {
      throw context.usage("--listen is missing: expected an address such as 127.0.0.1:7777")
    }
    guard let (host, port) = Self.split(word) else {
      throw context.usage(
        "--listen “\(SafeText.line(word, cells: 60))” is no address: expected ADDR:PORT such as"
          + " 127.0.0.1:7777")
    }
    (self.host, self.port) = (host, port)
  }

  /// A port of 0 is no part of a relay's address, so `RelayURL` refuses it and this does not.
  private static func split(_ word: String) -> (String, UInt16)? {
    guard let colon = word.lastIndex(of: ":"), let port = UInt16(word[word.index(after: colon)...])
    else { return nil }
    var host = String(word[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    // With any port but 0 it would be the host of a relay's address.
    let isAddress = RelayURL("ws://\(word[..<colon]):1")?.path == "/"
    return isAddress ? (host, port) : nil
  }

  /// - Parameter meanwhile: Runs beside the relay, once a second, until the end.
  func run(
    _ machine: RelayMachine, journal: EventJournal? = nil, _ context: Context,
    meanwhile: ((RelayHost) async throws -> Void)? = nil
  ) async throws -> ExitCode {
    let service = SocketService()
    let relay = RelayHost(
      machine, ports: context.ports, executor: ThreadExecutor(), journal: journal)
    let bound: UInt16
    do throws(TransportError) {
      bound = try await relay.start(
        on: SocketListener(service: service), host: host, port: port)
    } catch {
      // A refusal says all of it, and is none of the kind that a connection meets.
      if case .refused(let why) = error { throw Failure(.io, why) }
      throw Failure(.io, "\(host):\(port) cannot be listened on: \(error)")
    }
    try announce(bound, context)
    while !context.stop.isRequested, await relay.failure == nil {
      // A cancelled sleep is the signal that ends the loop.
      try? await Task.sleep(for: .seconds(1))
      if !context.stop.isRequested { try await meanwhile?(relay) }
    }
    let failure = await relay.failure
    await relay.stop()
    if case .journal(let error) = failure {
      throw Failure(.io, "the relay stopped: \(error)")
    }
    return context.stop.code ?? .done
  }

  private func announce(_ bound: UInt16, _ context: Context) throws {
    let name = host.contains(":") ? "[\(host)]" : host
    let url = "ws://\(name):\(bound)"
    if context.wantsJSON {
      try context.out.write(row: ["type": "listening", "url": JSON(url)])
    } else {
      try context.out.write(line: "listening on \(url)")
    }
    try context.out.flush()
  }
}
