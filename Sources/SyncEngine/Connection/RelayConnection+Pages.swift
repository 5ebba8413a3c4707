import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// A page of stored events while it comes in.
struct OpenPage {
  let tally: @Sendable () -> PageTally
  let overflow: PageOverflow
  let continuation: CheckedContinuation<FetchedPage, Never>
  var page: FetchedPage
  var unverified: [Event] = []
  /// Before which of those something came that could not be read.
  var unreadable: [Int] = []
  /// Changes when the page begins anew, so that a late verdict is not counted twice.
  var edition = 0
  /// Set once nothing more comes.
  var end: PageEnd?
  var isVerifying = false
  /// The reader, where too much came to go on.
  var reader: CheckedContinuation<Void, Never>?

  /// What waits to be verified.
  var waiting: Int { unverified.count + unreadable.count }

  mutating func takeWaiting() -> (events: [Event], unreadable: [Int], edition: Int) {
    let taken = (events: unverified, unreadable: unreadable, edition: edition)
    unverified = []
    unreadable = []
    letReaderOn()
    return taken
  }

  mutating func letReaderOn() {
    reader?.resume()
    reader = nil
  }
}

/// Pages of stored events: each is verified in the order of its arrival, beside what still comes of
/// it and of others.
extension RelayConnection {
  /// Asks for one page of stored events and returns when it has ended, one way or another.
  func fetch(
    _ request: HistoryWalk.Request, overflow: @escaping PageOverflow = { _, _ in }
  ) async -> FetchedPage {
    let id = nextAsk()
    let now = ports.clock.now()
    let tally: @Sendable () -> PageTally = { request.tally(now: now) }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        pages[id] = OpenPage(
          tally: tally, overflow: overflow, continuation: continuation,
          page: FetchedPage(tally: tally(), end: .cancelled))
        let effects = step(Task.isCancelled ? .cancel(id) : .ask(id, request))
        if pages[id] != nil, Task.isCancelled { finish(id, .cancelled) }
        performLater(effects)
      }
    } onCancel: {
      _ = ports.tasks.spawn("cancel request") { [weak self] in await self?.cancel(id) }
    }
  }

  // MARK: What comes

  func add(_ event: Event, _ fit: ConnectionMachine.Fit, to id: AskID) async {
    switch fit {
    case .aboveUntil: pages[id]?.page.tally.addAboveUntil(event.position)
    case .belowSince: pages[id]?.page.tally.addBelowSince(event.position)
    case .inside:
      pages[id]?.unverified.append(event)
      await takeOver(id)
    }
  }

  func add(_ reject: Reject, to id: AskID) async {
    guard let count = pages[id]?.unverified.count else { return }
    pages[id]?.page.rejected.append(reject)
    pages[id]?.unreadable.append(count)
    await takeOver(id)
  }

  func restart(_ id: AskID) {
    guard let open = pages[id] else { return }
    pages[id]?.page = FetchedPage(tally: open.tally(), end: .cancelled)
    _ = pages[id]?.takeWaiting()
    pages[id]?.edition += 1
  }

  func answered(_ id: AskID, _ end: PageEnd) {
    guard let open = pages[id] else { return }
    if open.waiting == 0, !open.isVerifying { return finish(id, end) }
    pages[id]?.end = end
    startVerifying(id)
  }

  private func finish(_ id: AskID, _ end: PageEnd) {
    guard var open = pages.removeValue(forKey: id) else { return }
    open.letReaderOn()
    open.page.end = end
    open.continuation.resume(returning: open.page)
  }

  // MARK: Verifying

  /// Has a full batch verified, and waits where several have come meanwhile.
  private func takeOver(_ id: AskID) async {
    guard let count = pages[id]?.waiting, count >= limits.verifyBatch else { return }
    startVerifying(id)
    guard count >= limits.verifyBatch * limits.verifyBatchesMax, pages[id]?.reader == nil else {
      return
    }
    await withCheckedContinuation { pages[id]?.reader = $0 }
  }

  private func startVerifying(_ id: AskID) {
    guard pages[id]?.isVerifying == false else { return }
    pages[id]?.isVerifying = true
    _ = ports.tasks.spawn("page verifier") { [weak self] in await self?.verifyAll(id) }
  }

  private func verifyAll(_ id: AskID) async {
    while let count = pages[id]?.waiting {
      let end = pages[id]?.end
      if count == 0, let end { return finish(id, end) }
      guard count >= limits.verifyBatch || end != nil else { break }
      await verify(id)
    }
    pages[id]?.isVerifying = false
  }

  private func verify(_ id: AskID) async {
    guard let (events, unreadable, edition) = pages[id]?.takeWaiting() else { return }
    let verdicts = await verifier.verify(events, on: ports.work)
    // The page may have ended or begun anew meanwhile.
    guard pages[id]?.edition == edition, var open = pages.removeValue(forKey: id) else { return }
    Self.take(verdicts, of: events, unreadable: unreadable, into: &open.page)
    let spills = open.page.events.count + open.page.rejected.count >= limits.chunkEventsMax
    let (verified, rejected) = (open.page.events, open.page.rejected)
    if spills {
      open.page.events = []
      open.page.rejected = []
    }
    pages[id] = open
    if spills { await open.overflow(verified, rejected) }
  }

  /// - Parameter unreadable: Before which of the events something came that could not be read; its
  ///   place among its neighbours tells which span it leaves in doubt.
  private static func take(
    _ verdicts: [Result<VerifiedEvent, VerifyFailure>], of events: [Event], unreadable: [Int],
    into page: inout FetchedPage
  ) {
    var places = unreadable[...]
    for (index, (event, verdict)) in zip(events, verdicts).enumerated() {
      while places.first == index {
        places.removeFirst()
        page.tally.addUnreadable()
      }
      switch verdict {
      case .success(let verified):
        page.tally.addVerified(event.position)
        page.events.append(verified)
      case .failure(let failure):
        page.tally.addInvalid(event.position, isDated: failure == .signature)
        page.rejected.append(Reject(id: Text(event.id.hex), reason: failure.reason))
      }
    }
    for _ in places { page.tally.addUnreadable() }
  }
}

extension ScanError {
  var reject: Reject { Reject(reason: reason, detail: Text(description)) }
}
