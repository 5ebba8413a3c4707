import Nostr

// A NOTICE names no request. Those that it may have meant get a last moment to answer; of several
// that do not, each is asked again by itself, so that the next NOTICE can mean only one.
//
// * Until it is clear which was meant, nothing else is asked for.
// * A request that a NOTICE has meant for certain is asked once more under a shorter id, because
//   some relays take no long ones. Whether that helped is remembered.
// * A relay that was seen to refuse by NOTICE is asked for one thing at a time from then on.
extension ConnectionMachine {
  /// What is known of a relay that refuses by NOTICE, and who is still to be asked alone.
  struct Suspects: Sendable {
    /// Whether it is not clear yet which request a NOTICE has meant.
    var isSeeking = false
    /// To be asked alone, in this order.
    var waiting: [Target] = []
    var hasRefused = false
    /// Whether the relay answers under a short id what it refuses under a long one.
    var shortIDsHelp: Bool?
  }

  mutating func suspect(_ quiet: [SubscriptionID], _ text: Text, _ now: Duration) {
    for id in quiet {
      guard let deadline = open[id]?.deadline else { continue }
      open[id]?.notice = text
      open[id]?.deadline = min(deadline, now + limits.noticeGrace)
      if quiet.count == 1 { open[id]?.isAlone = true }
      suspects.isSeeking = true
    }
  }

  /// - Returns: Whether a request that stayed quiet after a NOTICE is asked again by itself, instead
  ///   of being taken for refused.
  mutating func isAskedAgain(_ request: OpenRequest) -> Bool {
    guard request.notice != nil else { return false }
    if request.isAlone {
      suspects.hasRefused = true
      if request.isShort {
        suspects.shortIDsHelp = suspects.shortIDsHelp ?? false
        return false
      }
      guard suspects.shortIDsHelp != false else { return false }
    }
    switch request.target {
    case .ask(let id):
      asks[id]?.phase = .queued
      asks[id]?.isShort = request.isAlone
      // History first: somebody waits for it.
      let place = suspects.waiting.firstIndex { if case .live = $0 { true } else { false } }
      suspects.waiting.insert(request.target, at: place ?? suspects.waiting.endIndex)
    case .live(let name):
      lives[name]?.phase = .idle
      lives[name]?.isShort = request.isAlone
      lives[name]?.isInterrupted = true
      effects.append(.subscription(name, .wanted))
      suspects.waiting.append(request.target)
    }
    return true
  }

  /// The relay has answered a request.
  mutating func isHeard(_ request: OpenRequest) {
    if request.isShort, suspects.shortIDsHelp == nil { suspects.shortIDsHelp = true }
  }

  /// Asks the next of those that a NOTICE may have meant.
  ///
  /// - Returns: Whether nothing else may be asked for now.
  mutating func isSeekingRefused(_ now: Duration, _ random: any RandomSource) -> Bool {
    guard suspects.isSeeking else { return false }
    let isUnclear = open.values.contains { request in
      request.notice != nil || request.isAlone && !request.hasProgress
    }
    if isUnclear { return true }
    while let next = suspects.waiting.first {
      guard isWaiting(next) else {
        suspects.waiting.removeFirst()
        continue
      }
      if hasQuiet { return true }
      switch next {
      case .ask(let id):
        guard mayGo(.backfill, now) else { return true }
        openAsk(id, now, random, isAlone: true)
      case .live(let name):
        guard mayGo(.liveRequest, now) else { return true }
        openLive(name, now, random, isAlone: true)
      }
      suspects.waiting.removeFirst()
      return true
    }
    suspects.isSeeking = false
    return false
  }

  private func isWaiting(_ target: Target) -> Bool {
    switch target {
    case .ask(let id): asks[id]?.phase == .queued
    case .live(let name): lives[name]?.phase == .idle
    }
  }

  /// Whether a request has heard nothing yet.
  private var hasQuiet: Bool { open.values.contains { !$0.hasProgress } }

  /// Whether a NOTICE would still be understood after one more request.
  var isOneMoreClear: Bool { !suspects.hasRefused || !hasQuiet }

  /// An id never used before on this connection.
  func subscriptionID(isShort: Bool, _ random: any RandomSource) -> SubscriptionID {
    guard isShort else { return random.subscriptionID() }
    // The count of all requests so far: as short as can be, and as fresh.
    return Text(String(openNext, radix: 36))
  }
}
