import CWebSockets
import Glibc
import Platform
import SyncCore

/// One listening socket between its owner and the service thread.
final class ListenerCore: SocketHandle, ServiceWork, @unchecked Sendable {
  // Unchecked: `state` has a lock; the rest is touched only on the service thread.
  typealias Accepter = CheckedContinuation<Result<SocketLink, TransportError>, Never>

  private struct State {
    var isClosed = false
    var isAdopted = false
    /// The library has let go of the socket; its number may be another's already.
    var isGone = false
    var waiting: [(ticket: UInt64, continuation: Accepter)] = []
    var ready = Fifo<SocketLink>()
    var links: [ObjectIdentifier: LinkCore] = [:]
    var ticketLast: UInt64 = 0
    var information: [UInt8]?
    var answerer: QuestionAnswerer?
  }

  private let service: ServiceCore
  private weak let owner: SocketService?
  private let socket: ListeningSocket
  private let frameBytesMax: Int
  private let state = Lock(State())
  private var connectionsNow = 0
  private static let acceptersMax = 64

  init(service: SocketService, socket: ListeningSocket, frameBytesMax: Int) {
    self.service = service.core
    owner = service
    self.socket = socket
    self.frameBytesMax = frameBytesMax
  }

  // MARK: Callers

  func start() { service.flag(self) }

  func accept() async throws(TransportError) -> SocketLink {
    let ticket = state.withLock { state in
      state.ticketLast += 1
      return state.ticketLast
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: Accepter) in
        let ready = state.withLock { state -> Result<SocketLink, TransportError>? in
          if Task.isCancelled || state.isClosed { return .failure(.cancelled) }
          if let link = state.ready.popFirst() { return .success(link) }
          guard state.waiting.count < Self.acceptersMax else {
            return .failure(.refused("\(Self.acceptersMax) callers already wait to accept"))
          }
          state.waiting.append((ticket, continuation))
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      let waiting = state.withLock { state -> Accepter? in
        guard let index = state.waiting.firstIndex(where: { $0.ticket == ticket }) else {
          return nil
        }
        return state.waiting.remove(at: index).continuation
      }
      waiting?.resume(returning: .failure(.cancelled))
    }
    return try result.get()
  }

  func setRelayInformation(_ json: [UInt8]) { state.withLock { $0.information = json } }

  func setAnswerer(_ answerer: @escaping QuestionAnswerer) {
    state.withLock { $0.answerer = answerer }
  }

  func close() {
    if end() { service.flag(self) }
  }

  /// False where it had ended already.
  private func end() -> Bool {
    let (isFirst, waiting, links) = state.withLock { state in
      let isFirst = !state.isClosed
      state.isClosed = true
      defer { state.waiting = [] }
      _ = state.ready.removeAll()
      if isFirst, !state.isGone { socket.stop() }
      return (isFirst, state.waiting.map(\.continuation), Array(state.links.values))
    }
    for continuation in waiting { continuation.resume(returning: .failure(.cancelled)) }
    for link in links { link.abandon() }
    return isFirst
  }

  // MARK: The service thread

  func attend(_ service: ServiceCore, context: OpaquePointer) {
    let (isClosed, isAdopted) = state.withLock { state in
      defer { state.isAdopted = true }
      return (state.isClosed, state.isAdopted)
    }
    if let wsi, isClosed {
      lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
    } else if !isAdopted, isClosed {
      Glibc.close(socket.descriptor)
    } else if !isAdopted {
      adopt()
    }
  }

  func serviceEnded() {
    _ = end()
    let isAdopted = state.withLock { state in
      defer { state.isAdopted = true }
      return state.isAdopted
    }
    if !isAdopted { Glibc.close(socket.descriptor) }
  }

  /// Lets the library watch the socket: it calls back when a connection waits.
  private func adopt() {
    var info = lws_adopt_desc_t()
    info.vh = service.serverHost
    info.type = LWS_ADOPT_RAW_FILE_DESC
    info.fd.filefd = socket.descriptor
    info.opaque = opaque
    holdItself()
    if let made = lws_adopt_descriptor_vhost_via_info(&info) {
      wsi = made
    } else {
      releaseItself()
      _ = end()
    }
  }

  override func handle(
    _ reason: lws_callback_reasons, wsi: OpaquePointer, bytes: UnsafeRawBufferPointer
  ) -> Int32 {
    switch reason {
    case LWS_CALLBACK_RAW_RX_FILE:
      while let connection = socket.accept() { take(connection) }
    case LWS_CALLBACK_WSI_DESTROY:
      state.withLock { $0.isGone = true }
      _ = end()
    default: break
    }
    return 0
  }

  private func take(_ descriptor: Int32) {
    // Twice the links, so that there is room to say 1008 and to answer plain requests.
    guard connectionsNow < 2 * service.limits.acceptedLinksMax,
      let connection = ServerConnection.adopt(
        descriptor, host: service.serverHost, listener: self,
        questionBytesMax: service.limits.questionBytesMax)
    else {
      if connectionsNow >= 2 * service.limits.acceptedLinksMax { Glibc.close(descriptor) }
      return
    }
    connectionsNow += 1
    connection.onEnd = { [weak self] in self?.connectionsNow -= 1 }
  }

  var relayInformation: [UInt8]? { state.withLock { $0.information } }

  var answerer: QuestionAnswerer? { state.withLock { $0.answerer } }

  /// Has a connection looked at on the service thread.
  func flag(_ connection: ServerConnection) { service.flag(connection) }

  /// A WebSocket was opened by the other side.
  func established(_ wsi: OpaquePointer, onEnd: @escaping () -> Void) {
    let limits = service.limits
    let core = LinkCore(service: service, target: nil, frameBytesMax: frameBytesMax)
    let identity = ObjectIdentifier(core)
    core.onEnd = { [weak self] in
      self?.state.withLock { _ = $0.links.removeValue(forKey: identity) }
      onEnd()
    }
    core.attach(to: wsi)
    guard let owner else { return core.abandon() }
    let (isWelcome, accepter) = state.withLock { state -> (Bool, (Accepter, SocketLink)?) in
      let isFull =
        state.links.count >= limits.acceptedLinksMax
        || state.ready.count >= limits.acceptQueueMax
      guard !state.isClosed, !isFull else { return (false, nil) }
      state.links[identity] = core
      let link = SocketLink(core: core, service: owner)
      if state.waiting.isEmpty {
        state.ready.append(link)
        return (true, nil)
      }
      return (true, (state.waiting.removeFirst().continuation, link))
    }
    if let (continuation, link) = accepter { continuation.resume(returning: .success(link)) }
    // 1013 would say it better, but this library's own client takes that for a broken frame.
    if !isWelcome { core.close(code: 1008) }
  }
}
