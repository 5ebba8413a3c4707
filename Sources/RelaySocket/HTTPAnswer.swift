import CWebSockets

/// The answer to one plain HTTP request on a relay's port (NIP-11).
final class HTTPAnswer: SocketHandle, @unchecked Sendable {
  // Unchecked: touched only on the service thread.
  private let body: WriteBuffer

  private init(body: [UInt8]) { self.body = WriteBuffer(body) }

  private static let mediaType = "application/nostr+json"
  private static let headerBytesMax = 2048

  /// Sends the header; the body follows when the socket takes it.
  static func start(on wsi: OpaquePointer, information: [UInt8]?) -> Int32 {
    let isPreflight = lws_hdr_total_length(wsi, WSI_TOKEN_OPTIONS_URI) > 0
    let isForDocument = header(WSI_TOKEN_HTTP_ACCEPT, of: wsi).contains(mediaType)
    let status: UInt32
    var type = "text/plain; charset=utf-8"
    var body: [UInt8] = []
    if isPreflight {
      status = 204
    } else if isForDocument, let information {
      (status, type, body) = (200, mediaType, information)
    } else if isForDocument {
      (status, body) = (404, Array("This relay has no information document.\n".utf8))
    } else {
      (status, body) = (200, Array("This is a Nostr relay. Connect with a WebSocket.\n".utf8))
    }
    guard writeHeader(on: wsi, status: status, type: type, bodyCount: body.count) else {
      return -1
    }
    if body.isEmpty { return lws_http_transaction_completed(wsi) != 0 ? -1 : 0 }
    HTTPAnswer(body: body).attach(to: wsi)
    lws_callback_on_writable(wsi)
    return 0
  }

  override func handle(
    _ reason: lws_callback_reasons, wsi: OpaquePointer, bytes: UnsafeRawBufferPointer
  ) -> Int32 {
    guard reason == LWS_CALLBACK_HTTP_WRITEABLE else { return 0 }
    let isWritten = body.write(to: wsi, as: LWS_WRITE_HTTP_FINAL)
    lws_set_opaque_user_data(wsi, nil)
    releaseItself()
    return isWritten && lws_http_transaction_completed(wsi) == 0 ? 0 : -1
  }

  /// Any page may read the document: NIP-11 demands these headers.
  private static func writeHeader(
    on wsi: OpaquePointer, status: UInt32, type: String, bodyCount: Int
  ) -> Bool {
    let padding = skep_lws_pre()
    var buffer = [UInt8](repeating: 0, count: padding + headerBytesMax)
    return buffer.withUnsafeMutableBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return false }
      let start = base.advanced(by: padding)
      let end = start.advanced(by: headerBytesMax)
      var next: UnsafeMutablePointer<UInt8>? = start
      func add(_ name: String, _ value: String) -> Bool {
        lws_add_http_header_by_name(wsi, name, value, Int32(value.utf8.count), &next, end) == 0
      }
      return lws_add_http_common_headers(
        wsi, status, type, UInt64(bodyCount), &next, end) == 0
        && add("access-control-allow-origin:", "*")
        && add("access-control-allow-headers:", "*")
        && add("access-control-allow-methods:", "GET, OPTIONS")
        && lws_finalize_write_http_header(wsi, start, &next, end) == 0
    }
  }

  private static func header(_ token: lws_token_indexes, of wsi: OpaquePointer) -> String {
    let count = Int(lws_hdr_total_length(wsi, token))
    guard count > 0 else { return "" }
    var text = [CChar](repeating: 0, count: count + 1)
    guard lws_hdr_copy(wsi, &text, Int32(text.count), token) > 0 else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
