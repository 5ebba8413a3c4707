package import Nostr
import Platform
package import SyncCore

/// A network in memory: clients reach whoever listens on it, by name and port, without a socket.
///
/// Connections are ordered and bounded like real ones. It can be taken down and cut, so that an
/// engine can be tested against a relay that goes away and comes back.
package final class MemoryNetwork: Transport, TransportListener, RelayInformationFetcher,
  RelayQueries
{
  private struct State {
    var listeners: [String: MemoryListener] = [:]
    var links: [MemoryLink] = []
    var isReachable = true
    var clock: (any SyncClock)?
    var portNext: UInt16 = 40_000
  }

  private let framesMax: Int
  private let state = Lock(State())

  /// - Parameter framesMax: How many frames a connection holds in each direction before its writer
  ///   waits.
  package init(framesMax: Int = 256) { self.framesMax = framesMax }

  package func listen(host: String, port: UInt16, frameBytesMax: Int)
    async throws(TransportError) -> any BoundListener
  {
    try bind(host: host, port: port, frameBytesMax: frameBytesMax)
  }

  package func open(_ url: RelayURL, frameBytesMax: Int)
    async throws(TransportError) -> any TransportLink
  {
    guard let listener = listener(at: url) else { throw .refused("nobody listens at \(url)") }
    let up = MemoryPipe(framesMax: framesMax)
    let down = MemoryPipe(framesMax: framesMax)
    let near = MemoryLink(
      inbound: down, outbound: up, frameBytesMaxOfPeer: listener.frameBytesMax)
    let far = MemoryLink(inbound: up, outbound: down, frameBytesMaxOfPeer: frameBytesMax)
    guard listener.offer(far) else { throw .refused("the backlog of \(url) is full") }
    state.withLock { $0.links.append(near) }
    return near
  }

  package func document(of url: RelayURL) async throws(TransportError) -> [UInt8] {
    guard let listener = listener(at: url) else { throw .refused("nobody listens at \(url)") }
    return listener.document
  }

  package func answer(of url: RelayURL) async throws(TransportError) -> RelayAnswer {
    RelayAnswer(document: try await document(of: url), date: state.withLock { $0.clock }?.now())
  }

  package func post(_ question: RelayQuestion) async throws(TransportError) -> RelayReply {
    guard let listener = listener(at: question.relay) else {
      throw .refused("nobody listens at \(question.relay)")
    }
    guard let answerer = listener.answerer else { return RelayReply(status: 404) }
    let served = ServedQuestion(
      path: question.path, body: question.body, authorization: question.authorization)
    guard let reply = await answerer(served) else { throw .timedOut }
    return reply.status == 200 ? reply : RelayReply(status: reply.status)
  }

  /// By which clock its web servers tell the time from now on; nil: they do not.
  package func setClock(_ clock: (any SyncClock)?) { state.withLock { $0.clock = clock } }

  /// Whether new connections can be made; those that are open are not touched.
  package func setReachable(_ isReachable: Bool) {
    state.withLock { $0.isReachable = isReachable }
  }

  /// Drops every open connection without a close handshake; frames on the way are lost.
  package func cutAll() {
    let links = state.withLock { state -> [MemoryLink] in
      defer { state.links.removeAll() }
      return state.links
    }
    for link in links { link.abandon() }
  }

  private func bind(host: String, port: UInt16, frameBytesMax: Int) throws(TransportError)
    -> MemoryListener
  {
    let bound = state.withLock { state -> MemoryListener? in
      var port = port
      if port == 0 {
        port = state.portNext
        state.portNext += 1
      }
      let key = MemoryNetwork.key(host: host, port: port)
      if let other = state.listeners[key], !other.isClosed { return nil }
      let listener = MemoryListener(port: port, frameBytesMax: frameBytesMax)
      state.listeners[key] = listener
      return listener
    }
    guard let bound else { throw .refused("\(host):\(port) is taken") }
    return bound
  }

  private func listener(at url: RelayURL) -> MemoryListener? {
    state.withLock { state -> MemoryListener? in
      guard state.isReachable else { return nil }
      let listener = state.listeners[MemoryNetwork.key(host: url.host, port: url.port)]
      return listener?.isClosed == false ? listener : nil
    }
  }

  private static func key(host: String, port: UInt16) -> String {
    let isLoopback = host == "localhost" || host == "::1" || host.hasPrefix("127.")
    return "\(isLoopback ? "localhost" : host.lowercased()):\(port)"
  }
}

/// The listening end of a `MemoryNetwork`.
final class MemoryListener: BoundListener {
  private typealias Acceptor = CheckedContinuation<Result<MemoryLink, TransportError>, Never>

  private struct State {
    var backlog: [MemoryLink] = []
    var accepted: [MemoryLink] = []
    var acceptor: Acceptor?
    var isClosed = false
    var document: [UInt8] = []
    var answerer: QuestionAnswerer?
  }

  private static let backlogMax = 128

  let port: UInt16
  let frameBytesMax: Int
  private let state = Lock(State())

  init(port: UInt16, frameBytesMax: Int) {
    self.port = port
    self.frameBytesMax = frameBytesMax
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  var document: [UInt8] { state.withLock { $0.document } }

  func setRelayInformation(_ json: [UInt8]) { state.withLock { $0.document = json } }

  var answerer: QuestionAnswerer? { state.withLock { $0.answerer } }

  func setAnswerer(_ answerer: @escaping QuestionAnswerer) {
    state.withLock { $0.answerer = answerer }
  }

  func accept() async throws(TransportError) -> any TransportLink {
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in register(continuation) }
    } onCancel: {
      resumeAcceptor(with: .failure(.cancelled))
    }
    return try result.get()
  }

  func close() {
    let links = state.withLock { state -> [MemoryLink] in
      state.isClosed = true
      defer {
        state.backlog.removeAll()
        state.accepted.removeAll()
      }
      return state.backlog + state.accepted
    }
    for link in links { link.close(code: 1001) }
    resumeAcceptor(with: .failure(.cancelled))
  }

  /// - Returns: False where the listener takes no more.
  func offer(_ link: MemoryLink) -> Bool {
    enum Step {
      case refused
      case queued
      case accepted(Acceptor)
    }
    let step = state.withLock { state -> Step in
      if state.isClosed || state.backlog.count >= MemoryListener.backlogMax { return .refused }
      guard let acceptor = state.acceptor else {
        state.backlog.append(link)
        return .queued
      }
      state.acceptor = nil
      state.accepted.append(link)
      return .accepted(acceptor)
    }
    switch step {
    case .refused: return false
    case .queued: return true
    case .accepted(let acceptor):
      acceptor.resume(returning: .success(link))
      return true
    }
  }

  private func register(_ continuation: Acceptor) {
    let result = state.withLock { state -> Result<MemoryLink, TransportError>? in
      if state.isClosed || Task.isCancelled { return .failure(.cancelled) }
      guard !state.backlog.isEmpty else {
        precondition(state.acceptor == nil, "a listener has one acceptor at a time")
        state.acceptor = continuation
        return nil
      }
      let link = state.backlog.removeFirst()
      state.accepted.append(link)
      return .success(link)
    }
    if let result { continuation.resume(returning: result) }
  }

  private func resumeAcceptor(with result: Result<MemoryLink, TransportError>) {
    let acceptor = state.withLock { state -> Acceptor? in
      defer { state.acceptor = nil }
      return state.acceptor
    }
    acceptor?.resume(returning: result)
  }
}
