/// The thread that serves every socket of its owner.
///
/// It ends, with every connection on it, when the last transport, listener and link that use it
/// are gone.
package final class SocketService: Sendable {
  let core: ServiceCore

  package init(limits: SocketLimits = .init(), certificateAuthorityFile: String? = nil) {
    core = ServiceCore(limits: limits, certificateAuthorityFile: certificateAuthorityFile)
    core.start()
  }

  deinit { core.stop() }
}
