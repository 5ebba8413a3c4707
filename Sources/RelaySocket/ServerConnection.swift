import CWebSockets

/// An accepted connection until it has become a WebSocket; answers plain requests (NIP-11).
final class ServerConnection: SocketHandle, @unchecked Sendable {
  // Unchecked: touched only on the service thread.
  private let listener: ListenerCore
  private var body: WriteBuffer?
  var onEnd: (() -> Void)?

  private static let mediaType = "application/nostr+json"
  private static let headerBytesMax = 2048

  private init(listener: ListenerCore) { self.listener = listener }

  /// Hands a connected socket to the library, which closes it where it cannot take it.
  static func adopt(_ descriptor: Int32, host: OpaquePointer?, listener: ListenerCore)
    -> ServerConnection?
  {
    let connection = ServerConnection(listener: listener)
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
      return answer(wsi)
    case LWS_CALLBACK_HTTP_WRITEABLE:
      guard let body else { return 0 }
      self.body = nil
      let isWritten = body.write(to: wsi, as: LWS_WRITE_HTTP_FINAL)
      return isWritten && lws_http_transaction_completed(wsi) == 0 ? 0 : -1
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
    guard writeHeader(on: wsi, status: status, type: type, bodyCount: text.count) else {
      return -1
    }
    if text.isEmpty { return lws_http_transaction_completed(wsi) != 0 ? -1 : 0 }
    body = WriteBuffer(text)
    lws_callback_on_writable(wsi)
    return 0
  }

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
        && add("access-control-allow-origin:", "*")
        && add("access-control-allow-headers:", "*")
        && add("access-control-allow-methods:", "GET, OPTIONS")
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
