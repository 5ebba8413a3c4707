import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// One channel brought over by windows, as far as they go.
struct ChannelWindowRun: Sendable {
  let scope: Scope
  /// Events before it are not wanted, whatever a window holds.
  let floor: Timestamp
  let reconciler: Reconciler

  struct Outcome: Sendable {
    /// What was not proved, and is to be walked by pages.
    var left: [HistoryWalk.Leg]
    /// Whether the relay showed that it holds any event.
    var isSeen = false
  }

  private var connection: RelayConnection { reconciler.connection }

  /// - Parameters:
  ///   - legs: Newest first; only one that begins at the head can be read so.
  ///   - isFirst: Whether nothing of the channel was proved before: then a window is worth asking
  ///     for also where it proves nothing, because it brings at once what people look at.
  func run(
    _ legs: [HistoryWalk.Leg], isFirst: Bool
  ) async throws(LogError) -> Outcome {
    guard let head = legs.first, let key = await connection.windowKey,
      await isWorthAsking(isFirst: isFirst),
      let machine = ChannelWindowMachine(
        scope.filter, leg: head, relayKey: key, limits: reconciler.limits)
    else { return Outcome(left: legs) }
    let result = await read(machine)
    if let failure = result.failure { throw failure }
    await connection.learnWindows(
      result.end, projectsReplies: result.machine.projectsReplies)
    return Outcome(
      left: result.machine.left + legs.dropFirst(), isSeen: result.machine.hasRows)
  }

  private func isWorthAsking(isFirst: Bool) async -> Bool {
    if case .served(projectsReplies: false) = await connection.windows { return isFirst }
    return true
  }

  private func read(
    _ start: ChannelWindowMachine
  ) async -> (machine: ChannelWindowMachine, end: ChannelWindowMachine.End, failure: LogError?) {
    await withTaskGroup(of: LogError?.self) { group in
      var machine = start
      var failure: LogError?
      var isStoring = false
      var end = ChannelWindowMachine.End.cancelled
      while failure == nil {
        guard case .ask(let request) = machine.next(now: reconciler.ports.clock.now()) else {
          break
        }
        let window = await connection.fetch(request)
        let findings = machine.received(window.answer)
        // At most one window is being stored while the next one comes in.
        if isStoring, let error = await group.next() { failure = error }
        let batch = reconciler.batch(
          window.events.filter { request.wants($0.event) && floor <= $0.event.createdAt },
          window.rejected, findings, scope, askedAt: machine.askedAt, isRecorded: true)
        isStoring = true
        group.addTask { await reconciler.store(batch) }
      }
      if isStoring, let error = await group.next(), failure == nil { failure = error }
      if case .ended(let reason) = machine.next(now: reconciler.ports.clock.now()) { end = reason }
      return (machine: machine, end: end, failure: failure)
    }
  }
}
