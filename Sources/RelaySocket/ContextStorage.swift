import CWebSockets
import Platform

/// The memory that a libwebsockets context points into for as long as it lives.
final class ContextStorage {
  private unowned let core: ServiceCore
  private let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
  private let retry = UnsafeMutablePointer<lws_retry_bo_t>.allocate(capacity: 1)
  private let strings = CStrings()
  private let certificateAuthorityFile: String?

  /// The protocol that every connection is bound to here; it is not named on the wire.
  static let protocolName = "skep"
  /// Bytes read from a socket in one go.
  private static let readBytesMax = 16_384
  private static let descriptorsMax: UInt32 = 2048

  init(core: ServiceCore, certificateAuthorityFile: String?) {
    self.core = core
    self.certificateAuthorityFile = certificateAuthorityFile

    var entry = lws_protocols()
    entry.name = strings.keep(Self.protocolName)
    entry.callback = serviceCallback
    entry.rx_buffer_size = Self.readBytesMax
    protocols.initialize(to: entry)
    protocols.advanced(by: 1).initialize(to: lws_protocols())

    // Whether a quiet connection still lives is judged above, where its owner can say so; the
    // library's own pings and hang-ups are put out of reach (18 hours).
    var policy = lws_retry_bo_t()
    policy.secs_since_valid_ping = .max - 1
    policy.secs_since_valid_hangup = .max
    retry.initialize(to: policy)
  }

  deinit {
    protocols.deallocate()
    retry.deallocate()
  }

  /// What the context and every vhost have in common.
  private func baseInfo() -> lws_context_creation_info {
    var info = lws_context_creation_info()
    info.port = Self.portNone
    info.protocols = UnsafePointer(protocols)
    // No permessage-deflate: in 4.1 a pong with a payload that meets it keeps the thread in a loop
    // for ever, so any relay could stop every other connection. Tested by the ping tests.
    info.extensions = nil
    info.retry_and_idle_policy = UnsafePointer(retry)
    info.fd_limit_per_thread = Self.descriptorsMax
    info.pt_serv_buf_size = UInt32(Self.readBytesMax)
    info.user = Unmanaged.passUnretained(core).toOpaque()
    // Given and empty: otherwise the library would send everything, loopback included, to the
    // proxy that `http_proxy` names.
    info.http_proxy_address = strings.empty
    info.options =
      UInt64(LWS_SERVER_OPTION_EXPLICIT_VHOSTS) | UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT)
    return info
  }

  func makeContext() -> OpaquePointer? {
    // The library's first start sets process-wide state (TLS, log level, SIGPIPE to ignored).
    var made: OpaquePointer?
    ContextStorage.making.withLock { isFirst in
      lws_set_log_level(0, nil)
      var info = baseInfo()
      // Each start of its TLS part renumbers the slot in which a handshake under way on another
      // context's thread has left its connection.
      if !isFirst { info.options &= ~UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) }
      isFirst = false
      made = lws_create_context(&info)
    }
    return made
  }

  /// The vhost of outgoing connections, with the authorities that TLS trusts.
  func makeClientHost(_ context: OpaquePointer) -> OpaquePointer? {
    var made: OpaquePointer?
    ContextStorage.making.withLock { _ in
      var info = baseInfo()
      info.vhost_name = strings.keep("client")
      if let file = certificateAuthorityFile {
        info.client_ssl_ca_filepath = strings.keep(file)
      }
      made = lws_create_vhost(context, &info)
    }
    return made
  }

  /// The vhost of accepted connections; it listens nowhere itself.
  func makeServerHost(_ context: OpaquePointer) -> OpaquePointer? {
    var info = baseInfo()
    info.port = Self.portNoneServer
    info.vhost_name = strings.keep("server")
    info.options = UInt64(LWS_SERVER_OPTION_EXPLICIT_VHOSTS)
    return lws_create_vhost(context, &info)
  }

  /// Held while contexts are made; true until the first one is.
  private static let making = Lock(true)
  // `CONTEXT_PORT_NO_LISTEN` and `CONTEXT_PORT_NO_LISTEN_SERVER`, macros that are not imported.
  private static let portNone: Int32 = -1
  private static let portNoneServer: Int32 = -2
}

/// C strings freed together.
final class CStrings {
  private var kept: [UnsafeMutablePointer<CChar>] = []

  var empty: UnsafePointer<CChar>? { keep("") }

  func keep(_ text: String) -> UnsafePointer<CChar>? {
    text.withCString { source in
      let count = text.utf8.count + 1
      let copy = UnsafeMutablePointer<CChar>.allocate(capacity: count)
      copy.initialize(from: source, count: count)
      kept.append(copy)
      return UnsafePointer(copy)
    }
  }

  deinit { for text in kept { text.deallocate() } }
}
