import CWebSockets
import Platform

/// Something that the service thread is asked to look at.
protocol ServiceWork: AnyObject, Sendable {
  /// Runs on the service thread.
  func attend(_ service: ServiceCore, context: OpaquePointer)

  /// The thread ends, or never began; nothing will be attended any more.
  func serviceEnded()
}

/// The loop around one libwebsockets context, and the bell that wakes it.
///
/// Other threads never touch the context but for `lws_cancel_service`, the one call the library
/// allows them. What they want stands in their own state; here they only leave their name, at
/// most once each, so the list is bounded by the number of sockets.
final class ServiceCore: @unchecked Sendable {
  // Unchecked: `context` of `shared` is touched under its lock, the vhosts, `storage` and `endings`
  // only on the service thread.
  private struct Shared {
    var context: OpaquePointer?
    var attention: [any ServiceWork] = []
    var isStopping = false
  }

  let limits: SocketLimits
  /// Given when the thread has let go of everything.
  let ended = Answer<Void>()
  private let shared = Lock(Shared())
  private let certificateAuthorityFile: String?
  private(set) var clientHost: OpaquePointer?
  private(set) var serverHost: OpaquePointer?
  private var storage: ContextStorage?
  /// Connections that have something to hand out once this round of the loop is over.
  private var endings: [LinkCore] = []

  init(limits: SocketLimits, certificateAuthorityFile: String?) {
    self.limits = limits
    self.certificateAuthorityFile = certificateAuthorityFile
  }

  func start() { startThread { self.run() } }

  func stop() {
    shared.withLock { state in
      state.isStopping = true
      if let context = state.context { lws_cancel_service(context) }
    }
  }

  /// Asks the service thread to look at `work`; ends the work where there is no thread any more.
  func flag(_ work: any ServiceWork) {
    let isTaken = shared.withLock { state -> Bool in
      if state.isStopping { return false }
      state.attention.append(work)
      // A bell that has rung and was not heard yet need not ring again.
      if state.attention.count == 1, let context = state.context { lws_cancel_service(context) }
      return true
    }
    if !isTaken { work.serviceEnded() }
  }

  private func run() {
    let storage = ContextStorage(core: self, certificateAuthorityFile: certificateAuthorityFile)
    self.storage = storage
    let context = storage.makeContext()
    if let context {
      clientHost = storage.makeClientHost(context)
      serverHost = storage.makeServerHost(context)
      shared.withLock { $0.context = context }
      while let works = takeAttention() {
        for work in works { work.attend(self, context: context) }
        let isServed = lws_service(context, 0) >= 0
        endRound()
        if !isServed { break }
      }
    }
    let rest = shared.withLock { state -> [any ServiceWork] in
      state.isStopping = true
      state.context = nil
      defer { state.attention = [] }
      return state.attention
    }
    for work in rest { work.serviceEnded() }
    if let context { lws_context_destroy(context) }
    clientHost = nil
    serverHost = nil
    self.storage = nil
    ended.give(())
  }

  /// Calls `endRound` of a link when all sockets have been looked at; on the service thread.
  func atEndOfRound(_ link: LinkCore) {
    if endings.last !== link { endings.append(link) }
  }

  private func endRound() {
    for link in endings { link.endRound() }
    endings.removeAll(keepingCapacity: true)
  }

  private func takeAttention() -> [any ServiceWork]? {
    shared.withLock { state in
      if state.isStopping { return nil }
      defer { state.attention.removeAll(keepingCapacity: true) }
      return state.attention
    }
  }
}
