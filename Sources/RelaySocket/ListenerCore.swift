import CWebSockets
import Platform
import SyncCore

/// One listening socket between its owner and the service thread.
final class ListenerCore: ServiceWork, @unchecked Sendable {
  // Unchecked: `state` has a lock; `host`, `itself` and `strings` are touched only on the service
  // thread.
  typealias Accepter = CheckedContinuation<Result<SocketLink, TransportError>, Never>

  private struct State {
    var isClosed = false
    var waiting: [(ticket: UInt64, continuation: Accepter)] = []
    var ready = Fifo<SocketLink>()
    var linksNow = 0
    var ticketLast: UInt64 = 0
    var information: [UInt8]?
  }

  private let service: ServiceCore
  private weak let owner: SocketService?
  private let address: String
  private let port: UInt16
  private let frameBytesMax: Int
  private let state = Lock(State())
  private let bound = Answer<Result<UInt16, TransportError>>()
  private var host: OpaquePointer?
  private var itself: ListenerCore?
  private let strings = CStrings()
  private static let acceptersMax = 64

  init(service: SocketService, address: String, port: UInt16, frameBytesMax: Int) {
    self.service = service.core
    owner = service
    self.address = address
    self.port = port
    self.frameBytesMax = frameBytesMax
  }

  static func of(_ host: OpaquePointer) -> ListenerCore? {
    guard let pointer = lws_vhost_user(host) else { return nil }
    let object = Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue()
    return object as? ListenerCore
  }

  // MARK: Callers

  func bind() async throws(TransportError) -> UInt16 {
    service.flag(self)
    return try await bound.value().get()
  }

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

  func close() {
    if end() { service.flag(self) }
  }

  /// False where it had ended already.
  private func end() -> Bool {
    let (isFirst, waiting, dropped) = state.withLock { state in
      let isFirst = !state.isClosed
      state.isClosed = true
      defer { state.waiting = [] }
      return (isFirst, state.waiting.map(\.continuation), state.ready.removeAll())
    }
    for continuation in waiting { continuation.resume(returning: .failure(.cancelled)) }
    for link in dropped { link.abandon() }
    return isFirst
  }

  // MARK: The service thread

  func attend(_ service: ServiceCore, context: OpaquePointer) {
    if state.withLock({ $0.isClosed }) {
      if let host { lws_vhost_destroy(host) }
      host = nil
      bound.give(.failure(.cancelled))
    } else if host == nil {
      bound.give(listen(context))
    }
  }

  func serviceEnded() {
    bound.give(.failure(.cancelled))
    _ = end()
  }

  private func listen(_ context: OpaquePointer) -> Result<UInt16, TransportError> {
    guard var info = service.hostInfo() else { return .failure(.cancelled) }
    info.port = Int32(port)
    if address != "0.0.0.0", address != "::" { info.iface = strings.keep(address) }
    info.vhost_name = strings.keep("\(address):\(port)")
    info.options |= UInt64(LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND)
    info.user = Unmanaged<AnyObject>.passUnretained(self).toOpaque()
    info.finalize = { _, pointer in
      guard let pointer else { return }
      Unmanaged<ListenerCore>.fromOpaque(pointer).takeUnretainedValue().itself = nil
    }
    info.finalize_arg = Unmanaged.passUnretained(self).toOpaque()
    itself = self
    guard let made = lws_create_vhost(context, &info) else {
      itself = nil
      return .failure(.refused("\(address):\(port) cannot be listened on; is it in use?"))
    }
    let actual = lws_get_vhost_listen_port(made)
    guard actual > 0, let actual = UInt16(exactly: actual) else {
      lws_vhost_destroy(made)
      return .failure(.refused("\(address):\(port) cannot be listened on; is it in use?"))
    }
    host = made
    return .success(actual)
  }

  /// A WebSocket was opened by the other side.
  func established(_ wsi: OpaquePointer) -> Int32 {
    guard let owner else { return -1 }
    let limits = service.limits
    let isWelcome = state.withLock { state in
      let isFull =
        state.linksNow >= limits.acceptedLinksMax || state.ready.count >= limits.acceptQueueMax
      guard !state.isClosed, !isFull else { return false }
      state.linksNow += 1
      return true
    }
    guard isWelcome else {
      lws_close_reason(wsi, lws_close_status(1013), nil, 0)
      return -1
    }
    let core = LinkCore(service: service, target: nil, frameBytesMax: frameBytesMax) {
      [weak self] in self?.state.withLock { $0.linksNow -= 1 }
    }
    core.attach(to: wsi)
    let link = SocketLink(core: core, service: owner)
    let accepter = state.withLock { state -> Accepter? in
      if state.waiting.isEmpty {
        state.ready.append(link)
        return nil
      }
      return state.waiting.removeFirst().continuation
    }
    accepter?.resume(returning: .success(link))
    return 0
  }

  /// A request that is no upgrade.
  func answer(_ wsi: OpaquePointer) -> Int32 {
    HTTPAnswer.start(on: wsi, information: state.withLock { $0.information })
  }
}
