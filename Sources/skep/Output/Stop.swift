import Glibc
import Platform

/// The request to stop that SIGINT, SIGTERM and SIGHUP make.
///
/// A handler does no more than write the signal's number into a pipe, from which one thread takes
/// it. The first one cancels the command, which then finishes what it must and returns; a second
/// one ends the process at once, which loses nothing that was committed.
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

  // The only place that a handler can reach.
  nonisolated(unsafe) private static var signalDescriptor: Int32 = -1

  /// Takes the signals over. Called first of all, while there is only one thread.
  ///
  /// Blocking them and waiting would not do: the runtime parks the main thread with every signal
  /// let through, and there a signal without a handler ends the process.
  func takeSignals() {
    signal(SIGPIPE, SIG_IGN)
    var pair: [Int32] = [-1, -1]
    let made = pipe(&pair)
    precondition(made == 0, "a pipe could not be made")
    Self.signalDescriptor = pair[1]
    let executor = ThreadExecutor()
    let descriptor = pair[0]
    Task { await SignalWatch(executor: executor, stop: self).watch(descriptor) }
    for number in [SIGINT, SIGTERM, SIGHUP] { handle(number) }
  }

  private func handle(_ number: Int32) {
    var before = sigaction()
    sigaction(number, nil, &before)
    // Whoever says nohup wants the program to outlive its terminal.
    let isIgnored =
      unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
    if number == SIGHUP, isIgnored { return }
    var action = sigaction()
    action.sa_flags = SA_RESTART
    action.__sigaction_handler.sa_handler = { number in
      let kept = errno
      var byte = UInt8(truncatingIfNeeded: number)
      _ = write(Stop.signalDescriptor, &byte, 1)
      errno = kept
    }
    sigaction(number, &action, nil)
  }
}

/// The thread that takes signals.
private actor SignalWatch {
  private let executor: ThreadExecutor
  private let stop: Stop

  init(executor: ThreadExecutor, stop: Stop) {
    self.executor = executor
    self.stop = stop
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func watch(_ descriptor: Int32) {
    var number: UInt8 = 0
    while true {
      guard read(descriptor, &number, 1) == 1 else { continue }
      let code: ExitCode = Int32(number) == SIGINT ? .interrupted : .terminated
      if stop.isRequested { _exit(code.rawValue) }
      stop.request(code)
    }
  }
}
