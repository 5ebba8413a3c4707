import CWebSockets

/// What a libwebsockets connection points back to.
///
/// The library holds a bare pointer. The object keeps itself alive through `itself` from the
/// moment the library knows it until the library's last word on the connection, so neither side
/// can outlive the other.
class SocketHandle: @unchecked Sendable {
  // Unchecked: both are touched only on the service thread.
  final var wsi: OpaquePointer?
  private final var itself: SocketHandle?

  final var opaque: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  final func attach(to wsi: OpaquePointer) {
    holdItself()
    self.wsi = wsi
    lws_set_opaque_user_data(wsi, opaque)
  }

  final func holdItself() { itself = self }

  final func releaseItself() {
    wsi = nil
    itself = nil
  }

  /// Answers one callback; non-zero closes the connection.
  func handle(
    _ reason: lws_callback_reasons, wsi: OpaquePointer, bytes: UnsafeRawBufferPointer
  ) -> Int32 { 0 }

  static func of(_ wsi: OpaquePointer) -> SocketHandle? {
    guard let pointer = lws_get_opaque_user_data(wsi) else { return nil }
    return Unmanaged<SocketHandle>.fromOpaque(pointer).takeUnretainedValue()
  }
}

/// The one callback of every connection; runs on the service thread.
func serviceCallback(
  wsi: OpaquePointer?, reason: lws_callback_reasons, user: UnsafeMutableRawPointer?,
  pointer: UnsafeMutableRawPointer?, count: Int
) -> Int32 {
  guard let wsi else { return 0 }
  // For some reasons `pointer` is not memory of `count` bytes; only these carry data here.
  let carriesData =
    reason == LWS_CALLBACK_CLIENT_RECEIVE || reason == LWS_CALLBACK_RECEIVE
    || reason == LWS_CALLBACK_CLIENT_CONNECTION_ERROR
    || reason == LWS_CALLBACK_WS_PEER_INITIATED_CLOSE || reason == LWS_CALLBACK_HTTP_BODY
  let bytes = UnsafeRawBufferPointer(
    start: carriesData ? pointer : nil, count: carriesData && pointer != nil ? count : 0)
  guard let handle = SocketHandle.of(wsi) else { return 0 }
  let answer = handle.handle(reason, wsi: wsi, bytes: bytes)
  if reason == LWS_CALLBACK_WSI_DESTROY {
    lws_set_opaque_user_data(wsi, nil)
    handle.releaseItself()
  }
  return answer
}
