import CWebSockets
import Platform
import SyncCore

/// Where an outgoing connection goes, with its name already looked up.
struct ConnectTarget: Sendable {
  let address: String
  let port: UInt16
  /// For the `Host` header and, without the port, for SNI and the certificate's name.
  let hostAndPort: String
  let path: String
  let isSecure: Bool
}

/// One WebSocket between its callers and the service thread.
final class LinkCore: SocketHandle, ServiceWork, @unchecked Sendable {
  // Unchecked: `machine` has a lock; the rest is touched only on the service thread.
  private let machine: Lock<LinkMachine>
  private let service: ServiceCore
  private let target: ConnectTarget?
  private var isStarted = false
  private var assembly: MessageAssembly
  /// Kept until the library has let go of them.
  private var writing: [WriteBuffer] = []
  private var peerClose: (code: UInt16, reason: String)?
  private var localEnd: TransportError?
  var onEnd: (() -> Void)?

  /// - Parameter target: nil for the server's side of a connection, which is open from the start.
  init(service: ServiceCore, target: ConnectTarget?, frameBytesMax: Int) {
    self.service = service
    self.target = target
    assembly = MessageAssembly(limit: frameBytesMax)
    machine = Lock(LinkMachine(phase: target == nil ? .open : .opening, limits: service.limits))
  }

  // MARK: Callers

  /// Starts the connection and returns once it is open.
  func open() async throws(TransportError) {
    service.flag(self)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: LinkMachine.Sender) in
        perform { $0.awaitOpen(continuation, isCancelled: Task.isCancelled) }
      }
    } onCancel: {
      perform { $0.end(with: .cancelled, isAbandoned: true) }
    }
    try result.get()
  }

  func receive(upTo countMax: Int) async throws(TransportError) -> [InboundFrame] {
    let ticket = machine.withLock { $0.ticket() }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: LinkMachine.Receiver) in
        let wait = LinkMachine.Waiting(
          ticket: ticket, countMax: countMax, continuation: continuation)
        perform { $0.receive(wait, isCancelled: Task.isCancelled) }
      }
    } onCancel: {
      perform { $0.cancelReceive(ticket: ticket) }
    }
    return try result.get()
  }

  func send(_ payloads: [LinkMachine.Payload]) async throws(TransportError) {
    let ticket = machine.withLock { $0.ticket() }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: LinkMachine.Sender) in
        perform {
          $0.send(payloads, ticket: ticket, continuation, isCancelled: Task.isCancelled)
        }
      }
    } onCancel: {
      perform { $0.cancelSend(ticket: ticket) }
    }
    try result.get()
  }

  func close(code: UInt16) { perform { $0.close(code: code) } }

  func abandon() { perform { $0.abandon() } }

  func letGo() { perform { $0.letGo() } }

  /// Moves the machine, then does what it answered, outside the lock.
  private func perform(_ step: (inout LinkMachine) -> LinkMachine.Wakeups) {
    let wakeups = machine.withLock { step(&$0) }
    wakeups.resume()
    if wakeups.needsService { service.flag(self) }
  }

  // MARK: The service thread

  func attend(_ service: ServiceCore, context: OpaquePointer) {
    let wants = machine.withLock { $0.takeWants() }
    if !isStarted, let target {
      isStarted = true
      if !wants.kill { connect(to: target, context: context) }
      return
    }
    guard let wsi else { return }
    if wants.kill {
      lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
      return
    }
    if wants.resumeReading { lws_rx_flow_control(wsi, 1) }
    if wants.write { lws_callback_on_writable(wsi) }
  }

  func serviceEnded() {
    perform { $0.end(with: .closed(code: 1006, reason: "the socket service has ended")) }
  }

  private func connect(to target: ConnectTarget, context: OpaquePointer) {
    guard let host = service.clientHost else {
      perform { $0.end(with: .refused("the TLS trust store could not be read")) }
      return
    }
    let strings = CStrings()
    var info = lws_client_connect_info()
    info.context = context
    info.vhost = host
    info.address = strings.keep(target.address)
    info.port = Int32(target.port)
    info.host = strings.keep(target.hostAndPort)
    info.path = strings.keep(target.path)
    info.local_protocol_name = strings.keep(ContextStorage.protocolName)
    info.alpn = strings.keep("http/1.1")
    // A redirect would be a request to a host that nobody chose.
    info.ssl_connection = Int32(LCCSCF_HTTP_NO_FOLLOW_REDIRECT.rawValue)
    if target.isSecure { info.ssl_connection |= Int32(LCCSCF_USE_SSL.rawValue) }
    info.opaque_user_data = opaque
    holdItself()
    if let made = lws_client_connect_via_info(&info) {
      wsi = made
    } else {
      perform { $0.end(with: .refused("the connection could not be started")) }
      releaseItself()
    }
  }

  override func handle(
    _ reason: lws_callback_reasons, wsi: OpaquePointer, bytes: UnsafeRawBufferPointer
  ) -> Int32 {
    switch reason {
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      self.wsi = wsi
      perform { $0.opened() }
      // Ended meanwhile: nobody is left to use it.
      return machine.withLock { $0.isEnded } ? -1 : 0
    case LWS_CALLBACK_CLIENT_RECEIVE, LWS_CALLBACK_RECEIVE:
      let isFinal = lws_is_final_fragment(wsi) != 0
      if let frame = assembly.append(bytes, isFinal: isFinal) { arrived(frame, wsi) }
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG, LWS_CALLBACK_RECEIVE_PONG:
      arrived(.pong, wsi)
    case LWS_CALLBACK_CLIENT_WRITEABLE, LWS_CALLBACK_SERVER_WRITEABLE:
      return write(wsi)
    case LWS_CALLBACK_TIMER:
      guard machine.withLock({ $0.hasFrameInFlight }) else { return 0 }
      localEnd = .closed(code: 1006, reason: "the other side stopped reading")
      return -1
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      peerClose = closeReason(bytes)
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      let text = String(decoding: bytes, as: UTF8.self)
      let status = lws_http_client_http_response(wsi)
      perform { $0.end(with: connectError(text, status: status)) }
    case LWS_CALLBACK_CLIENT_HTTP_REDIRECT:
      return 1
    case LWS_CALLBACK_CLIENT_CLOSED, LWS_CALLBACK_CLOSED:
      finish()
    case LWS_CALLBACK_WSI_DESTROY:
      finish()
      writing = []
    default: break
    }
    return 0
  }

  /// Gives the place back before anyone hears of the end and may want it.
  private func finish() {
    onEnd?()
    onEnd = nil
    perform { $0.end(with: endReason($0)) }
  }

  /// Whoever waits is woken at the end of the round, with all that came in it.
  private func arrived(_ frame: InboundFrame, _ wsi: OpaquePointer) {
    let (isAwaited, pause) = machine.withLock { $0.arrived(frame) }
    if isAwaited { service.atEndOfRound(self) }
    if pause { lws_rx_flow_control(wsi, 0) }
  }

  func endRound() { perform { $0.deliver() } }

  /// Frames written in one turn, so that a busy connection does not hold up the others.
  private static let writesAtOnce = 32

  private func write(_ wsi: OpaquePointer) -> Int32 {
    writing = []
    for _ in 0..<Self.writesAtOnce {
      let (wakeups, next) = machine.withLock { $0.writable() }
      wakeups.resume()
      switch next {
      case .nothing:
        lws_set_timer_usecs(wsi, lws_usec_t(LWS_SET_TIMER_USEC_CANCEL))
        return 0
      case .close(let code):
        lws_close_reason(wsi, lws_close_status(UInt32(code)), nil, 0)
        return -1
      case .frame(let payload):
        guard write(payload, wsi) else { return -1 }
      }
      // Whether the kernel has taken all of this frame and has room for another.
      if lws_send_pipe_choked(wsi) != 0 { break }
    }
    lws_set_timer_usecs(wsi, service.limits.writeStallMax.microseconds)
    lws_callback_on_writable(wsi)
    return 0
  }

  private func write(_ payload: LinkMachine.Payload, _ wsi: OpaquePointer) -> Bool {
    let buffer: WriteBuffer
    let kind: lws_write_protocol
    switch payload {
    case .text(let text): (buffer, kind) = (text, LWS_WRITE_TEXT)
    case .ping: (buffer, kind) = (WriteBuffer([0, 0, 0, 0]), LWS_WRITE_PING)
    }
    writing.append(buffer)
    return buffer.write(to: wsi, as: kind)
  }

  /// Why the connection ended, as far as either side said.
  private func endReason(_ machine: LinkMachine) -> TransportError {
    if let localEnd { return localEnd }
    if let peerClose { return .closed(code: peerClose.code, reason: peerClose.reason) }
    if case .closing(let code) = machine.phase { return .closed(code: code, reason: "") }
    return .closed(code: 1006, reason: "")
  }

  private func closeReason(_ bytes: UnsafeRawBufferPointer) -> (UInt16, String) {
    guard bytes.count >= 2 else { return (1005, "") }
    let code = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    return (code, String(decoding: bytes.dropFirst(2), as: UTF8.self))
  }

  private func connectError(_ text: String, status: UInt32) -> TransportError {
    let lower = text.lowercased()
    if lower.contains("ssl") || lower.contains("tls") || lower.contains("cert")
      || lower.contains("x509") || lower.contains("hostname")
    {
      return .tls(text)
    }
    // "read failed": the other side hung up or spoke something that is not HTTP.
    if lower.hasPrefix("hs:") || lower.contains("read failed") || status != 0 {
      return .notWebSocket(status == 0 || status == 101 ? text : "the answer was HTTP \(status)")
    }
    return .refused(text.isEmpty ? "no reason given" : text)
  }
}

extension Duration {
  var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}
