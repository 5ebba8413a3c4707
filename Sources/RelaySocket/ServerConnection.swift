import CWebSockets
import Platform
import SyncCore

/// An accepted connection until it has become a WebSocket; answers plain requests (NIP-11), and
/// hands what is POSTed to whoever answers that.
final class ServerConnection: SocketHandle, ServiceWork, @unchecked Sendable {
  // Unchecked: `reply` has a lock; the rest is touched only on the service thread.
  private let listener: ListenerCore
  private let questionBytesMax: Int
  private var body: WriteBuffer?
  private var question: Question?
  /// A question ends its connection: whatever comes behind it on the same one is never read.
  private var isForQuestion = false
  private let reply = Lock<RelayReply?>(nil)
  var onEnd: (() -> Void)?

  /// What is being POSTed.
  private struct Question {
    let path: String
    let authorization: String?
    var body: [UInt8] = []
  }

  private static let mediaType = "application/nostr+json"
  private static let headerBytesMax = 2048
  /// How long, in seconds, an answer may take until the library gives the connection up.
  private static let answerSecondsMax: Int32 = 60

  private init(listener: ListenerCore, questionBytesMax: Int) {
    self.listener = listener
    self.questionBytesMax = questionBytesMax
  }

  /// Hands a connected socket to the library, which closes it where it cannot take it.
  static func adopt(
    _ descriptor: Int32, host: OpaquePointer?, listener: ListenerCore, questionBytesMax: Int
  ) -> ServerConnection? {
    let connection = ServerConnection(listener: listener, questionBytesMax: questionBytesMax)
    var info = lws_adopt_desc_t()
    info.vh = host
    info.type = lws_adoption_type(LWS_ADOPT_SOCKET.rawValue | LWS_ADOPT_HTTP.rawValue)
    info.fd.sockfd = descriptor
    info.opaque = connection.opaque
    connection.holdItself()
    guard let made = lws_adopt_descriptor_vhost_via_info(&info) else {
      connection.releaseItself()
      return nil
    }
    connection.wsi = made
    return connection
  }

  override func handle(
    _ reason: lws_callback_reasons, wsi: OpaquePointer, bytes: UnsafeRawBufferPointer
  ) -> Int32 {
    switch reason {
    case LWS_CALLBACK_HTTP:
      return lws_hdr_total_length(wsi, WSI_TOKEN_POST_URI) > 0 ? beginQuestion(wsi) : answer(wsi)
    case LWS_CALLBACK_HTTP_BODY:
      return take(bytes, on: wsi)
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
      return ask(wsi)
    case LWS_CALLBACK_HTTP_WRITEABLE:
      guard let body else { return 0 }
      self.body = nil
      let isWritten = body.write(to: wsi, as: LWS_WRITE_HTTP_FINAL)
      return isWritten && !isForQuestion && lws_http_transaction_completed(wsi) == 0 ? 0 : -1
    case LWS_CALLBACK_ESTABLISHED:
      // From here on the link answers, and tells when the connection is gone.
      let told = onEnd
      onEnd = nil
      listener.established(wsi) { told?() }
      releaseItself()
    case LWS_CALLBACK_WSI_DESTROY:
      onEnd?()
      onEnd = nil
    default: break
    }
    return 0
  }

  /// Sends the header; the body follows when the socket takes it.
  private func answer(_ wsi: OpaquePointer) -> Int32 {
    let isPreflight = lws_hdr_total_length(wsi, WSI_TOKEN_OPTIONS_URI) > 0
    let isForDocument = header(WSI_TOKEN_HTTP_ACCEPT, of: wsi).contains(Self.mediaType)
    let status: UInt32
    var type = "text/plain; charset=utf-8"
    var text: [UInt8] = []
    if isPreflight {
      status = 204
    } else if isForDocument, let information = listener.relayInformation {
      (status, type, text) = (200, Self.mediaType, information)
    } else if isForDocument {
      (status, text) = (404, Array("This relay has no information document.\n".utf8))
    } else {
      (status, text) = (200, Array("This is a Nostr relay. Connect with a WebSocket.\n".utf8))
    }
    return write(text, status: status, type: type, on: wsi)
  }

  private func write(
    _ text: [UInt8], status: UInt32, type: String, on wsi: OpaquePointer
  ) -> Int32 {
    guard writeHeader(on: wsi, status: status, type: type, bodyCount: text.count) else {
      return -1
    }
    if text.isEmpty { return isForQuestion || lws_http_transaction_completed(wsi) != 0 ? -1 : 0 }
    body = WriteBuffer(text)
    lws_callback_on_writable(wsi)
    return 0
  }

  // MARK: Questions

  private func beginQuestion(_ wsi: OpaquePointer) -> Int32 {
    isForQuestion = true
    guard listener.answerer != nil else { return refuse(404, on: wsi) }
    guard let length = Int(header(WSI_TOKEN_HTTP_CONTENT_LENGTH, of: wsi)), length >= 0 else {
      return refuse(411, on: wsi)
    }
    guard length <= questionBytesMax else { return refuse(413, on: wsi) }
    // The library keeps the header no longer than this.
    let authorization = header(WSI_TOKEN_HTTP_AUTHORIZATION, of: wsi)
    question = Question(
      path: header(WSI_TOKEN_POST_URI, of: wsi),
      authorization: authorization.isEmpty ? nil : authorization)
    // The end of the body is told also where there is none.
    return 0
  }

  private func take(_ bytes: UnsafeRawBufferPointer, on wsi: OpaquePointer) -> Int32 {
    question?.body.append(contentsOf: bytes)
    return question?.body.count ?? 0 > questionBytesMax ? -1 : 0
  }

  /// Hands the whole question over; the answer comes back through `attend`.
  private func ask(_ wsi: OpaquePointer) -> Int32 {
    // The end of a body is told also where its question was refused, and again for whatever comes
    // behind one that is being answered: each gets one answer.
    guard let question, let answerer = listener.answerer else { return 0 }
    self.question = nil
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, Self.answerSecondsMax)
    let served = ServedQuestion(
      path: question.path, body: question.body, authorization: question.authorization)
    _ = SystemTasks().spawn("http answer") { [self, listener] in
      guard let answer = await answerer(served) else { return }
      reply.withLock { $0 = answer }
      listener.flag(self)
    }
    return 0
  }

  private func refuse(_ status: UInt32, on wsi: OpaquePointer) -> Int32 {
    // What is still coming of the question is not read: the connection ends with the answer.
    let text = Array("HTTP \(status)\n".utf8)
    return write(text, status: status, type: "text/plain; charset=utf-8", on: wsi)
  }

  func attend(_ service: ServiceCore, context: OpaquePointer) {
    let answer = reply.withLock { reply -> RelayReply? in
      defer { reply = nil }
      return reply
    }
    // Whoever asked may be gone.
    guard let wsi, let answer else { return }
    let type = answer.status == 200 ? "application/json" : "text/plain; charset=utf-8"
    if write(answer.body, status: UInt32(answer.status), type: type, on: wsi) != 0 {
      lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
    }
  }

  func serviceEnded() {}

  /// Any page may read the document: NIP-11 demands these headers.
  private func writeHeader(
    on wsi: OpaquePointer, status: UInt32, type: String, bodyCount: Int
  ) -> Bool {
    let padding = skep_lws_pre()
    var buffer = [UInt8](repeating: 0, count: padding + Self.headerBytesMax)
    return buffer.withUnsafeMutableBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return false }
      let start = base.advanced(by: padding)
      let end = start.advanced(by: Self.headerBytesMax)
      var next: UnsafeMutablePointer<UInt8>? = start
      func add(_ name: String, _ value: String) -> Bool {
        lws_add_http_header_by_name(wsi, name, value, Int32(value.utf8.count), &next, end) == 0
      }
      return lws_add_http_common_headers(wsi, status, type, UInt64(bodyCount), &next, end) == 0
        && add("date:", HTTPDate.text(SystemClock.fromEnvironment().now()))
        && (!isForQuestion || add("connection:", "close"))
        && add("access-control-allow-origin:", "*")
        && add("access-control-allow-headers:", "*")
        && add("access-control-allow-methods:", "GET, POST, OPTIONS")
        && lws_finalize_write_http_header(wsi, start, &next, end) == 0
    }
  }

  private func header(_ token: lws_token_indexes, of wsi: OpaquePointer) -> String {
    let count = Int(lws_hdr_total_length(wsi, token))
    guard count > 0 else { return "" }
    var text = [CChar](repeating: 0, count: count + 1)
    guard lws_hdr_copy(wsi, &text, Int32(text.count), token) > 0 else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
