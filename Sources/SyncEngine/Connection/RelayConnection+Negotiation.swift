import Nostr
import SyncCore

/// Whether a relay was found to do NIP-77; it is asked rather than believed.
enum NegentropySupport: Sendable {
  case unknown
  case served
  case refused(NegotiationRefusal, at: Duration)
}

/// What came of comparing one set with a relay's.
enum NegotiationOutcome: Sendable {
  /// What the relay listed and the set lacks, and how many items of the set the relay lacks.
  ///
  /// - Parameter isWhole: Whether the session ran to its end, and was not cut at its bound.
  case compared(listed: [EventID], lacking: Int, isWhole: Bool)
  case ended(NegotiationEnd)
}

/// NIP-77 sessions, each fed with the relay's messages as they come.
extension RelayConnection {
  struct OpenNegotiation {
    let session: NegentropyMachine
    var listed: [EventID] = []
    var lacking = 0
    var rounds = 0
    let continuation: CheckedContinuation<NegotiationOutcome, Never>
  }

  /// Whether the relay does NIP-77, asked by a comparison of next to nothing: so a relay that never
  /// answers is told from one that has much to collect.
  func servesNegentropy() async -> Bool {
    switch negentropy {
    case .served: return true
    case .refused(_, let at) where ports.clock.uptime() < at + limits.negotiationRetryAfter:
      return false
    case .unknown, .refused: break
    }
    let information = machine.information
    if let information, !information.supportedNIPs.isEmpty,
      !information.supportedNIPs.contains(77)
    {
      return false
    }
    guard negotiationFrameMax != nil else { return false }
    let outcome = await negotiate(
      Filter(ids: [EventID(.zero)]), over: NegentropySet([]),
      openMax: limits.negotiationProbeMax)
    switch outcome {
    case .compared: negentropy = .served
    case .ended(.refused(let refusal)): refusedNegentropy(refusal)
    // A relay may drop whoever sends what it does not know.
    case .ended(.disconnected): refusedNegentropy(.silent)
    case .ended(.cancelled): break
    }
    if case .served = negentropy { return true }
    return false
  }

  func refusedNegentropy(_ refusal: NegotiationRefusal) {
    negentropy = .refused(refusal, at: ports.clock.uptime())
  }

  /// The longest message before hex, which doubles it; its label and id need room too. Nil where
  /// the relay takes none of a useful size.
  private var negotiationFrameMax: Int? {
    let wire = min(machine.information?.messageBytesMax ?? 131_072, 1 << 20)
    let bytes = wire / 2 - 512
    return bytes < 4096 ? nil : bytes
  }

  /// Compares a set with what the relay has for a filter, to the end or to the bound of what is
  /// found missing at once.
  func negotiate(
    _ filter: Filter, over set: NegentropySet, openMax: Duration
  ) async -> NegotiationOutcome {
    let id = nextAsk()
    let session = NegentropyMachine(
      set: set, isClient: true, frameBytesMax: negotiationFrameMax ?? 4096, cut: .lean)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled { return continuation.resume(returning: .ended(.cancelled)) }
        negotiations[id] = OpenNegotiation(session: session, continuation: continuation)
        performLater(step(.negotiate(id, filter, session.opening(), openMax: openMax)))
      }
    } onCancel: {
      _ = ports.tasks.spawn("cancel comparison") { [weak self] in
        await self?.giveUp(id, .ended(.cancelled))
      }
    }
  }

  private func giveUp(_ id: AskID, _ outcome: NegotiationOutcome) async {
    guard negotiations[id] != nil else { return }
    finishNegotiation(id, outcome)
    await take(.closeNegotiation(id))
  }

  func negotiated(_ id: AskID, _ message: [UInt8]) async {
    guard var open = negotiations[id] else { return }
    let answer: [UInt8]?
    do throws(NegentropyError) {
      let step = try open.session.receive(message)
      open.listed += step.need
      open.lacking += step.have.count
      open.rounds += 1
      answer = step.answer
    } catch {
      return await giveUp(id, .ended(.refused(.unsupported(Text(error.description)))))
    }
    negotiations[id] = open
    guard let answer else {
      return await giveUp(
        id, .compared(listed: open.listed, lacking: open.lacking, isWhole: true))
    }
    if open.listed.count >= limits.reconcileMissingMax {
      return await giveUp(
        id, .compared(listed: open.listed, lacking: open.lacking, isWhole: false))
    }
    guard open.rounds < limits.negotiationRoundsMax else {
      return await giveUp(id, .ended(.refused(.unsupported("the comparison does not end"))))
    }
    await take(.reply(id, answer))
  }

  func finishNegotiation(_ id: AskID, _ outcome: NegotiationOutcome) {
    negotiations.removeValue(forKey: id)?.continuation.resume(returning: outcome)
  }
}
