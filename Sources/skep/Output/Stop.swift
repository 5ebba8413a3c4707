import Glibc
import Platform

/// The request to stop that SIGINT, SIGTERM and SIGHUP make.
///
/// The signals are blocked everywhere and taken by one thread, so that no handler runs in the
/// middle of anything. The first one cancels the command, which then finishes what it must and
/// returns; a second one ends the process at once, which loses nothing that was committed.
final class Stop: Sendable {
  private let state = Lock(State())
  /// Readable once a stop was asked for, for whoever waits in `poll`.
  let descriptor: Int32
  private let wakeDescriptor: Int32

  private struct State {
    var code: ExitCode?
    var action: (@Sendable () -> Void)?
  }

  init() {
    var pair: [Int32] = [-1, -1]
    let made = pipe(&pair)
    precondition(made == 0, "a pipe could not be made")
    descriptor = pair[0]
    wakeDescriptor = pair[1]
  }

  /// What the signal asked for, once it came.
  var code: ExitCode? { state.withLock { $0.code } }

  var isRequested: Bool { code != nil }

  /// Runs `action` when a stop is asked for, or at once if it was already.
  func onRequest(_ action: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state -> Bool in
      state.action = action
      return state.code != nil
    }
    if isLate { action() }
  }

  func request(_ code: ExitCode) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.code == nil else { return nil }
      state.code = code
      return state.action
    }
    var byte: UInt8 = 1
    _ = write(wakeDescriptor, &byte, 1)
    action?()
  }

  /// Takes the signals over. Called first of all, while there is only one thread, because threads
  /// inherit what is blocked.
  func takeSignals() {
    signal(SIGPIPE, SIG_IGN)
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, number) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    let executor = ThreadExecutor()
    Task { await SignalWatch(executor: executor, stop: self).watch(signals) }
  }
}

/// The thread that waits for signals.
private actor SignalWatch {
  private let executor: ThreadExecutor
  private let stop: Stop

  init(executor: ThreadExecutor, stop: Stop) {
    self.executor = executor
    self.stop = stop
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func watch(_ signals: sigset_t) {
    var signals = signals
    while true {
      var number: Int32 = 0
      guard sigwait(&signals, &number) == 0 else { continue }
      let code: ExitCode = number == SIGINT ? .interrupted : .terminated
      if stop.isRequested { _exit(code.rawValue) }
      stop.request(code)
    }
  }
}
