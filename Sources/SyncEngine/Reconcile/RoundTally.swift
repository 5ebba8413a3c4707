import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// Adds up what the walks of one round at one relay bring, and what they learn that later walks need.
actor RoundTally {
  private(set) var progress = SyncProgress()
  private(set) var failure: LogError?
  private var gaps: [CoverageGap] = []
  private var walked: Set<Scope> = []
  private var unproved: Set<Scope> = []
  /// The relay wants a key and there is none.
  private(set) var keyNeeded: Text?
  private var groups: Set<Text> = []
  private var people: Set<PublicKey> = []
  private var peopleAsked: Set<PublicKey> = []
  private var shown: [RelayURL: Int] = [:]
  private var watches: [RelayURL: AnswerWatch] = [:]
  /// Relays that refuse a filter without kinds.
  private var kindsNeeded: Set<RelayURL> = []
  /// Relays that have answered one.
  private var kindlessServed: Set<RelayURL> = []
  /// What was served last. What the round asks for twice of its own accord is no duplicate.
  private var looked: RecentIDs<EventID>
  /// Why something that was wanted has not been read, and might be soon.
  private(set) var unsettled: Text?
  private let limits: Limits
  private let onProgress: @Sendable (SyncProgress) async -> Void

  init(limits: Limits, onProgress: @escaping @Sendable (SyncProgress) async -> Void) {
    self.limits = limits
    looked = RecentIDs(limits.secondLooksRemembered)
    self.onProgress = onProgress
  }

  var summary: SyncSummary {
    var summary = SyncSummary(progress)
    summary.gaps = gaps
    return summary
  }

  func planned(_ scopes: Int) { progress.scopesKnown += scopes }

  /// A trial that was refused, so that something else is asked in its place.
  func passedOver() async {
    progress.scopesDone += 1
    await onProgress(progress)
  }

  /// - Parameter unsettled: Why it is worth asking again soon, where it is.
  func ended(_ scope: Scope, _ isWhole: Bool, unsettled why: Text?) async {
    progress.scopesDone += 1
    walked.insert(scope)
    if !isWhole { unproved.insert(scope) }
    unsettled = unsettled ?? why
    await onProgress(progress)
  }

  /// The relay has answered a request, be it without an end.
  func answered(_ end: PageEnd, by relay: RelayURL) {
    let isWhole = if case .complete = end { true } else { false }
    watches[relay, default: AnswerWatch(limits: limits)].answered(isWhole: isWhole)
  }

  /// No connection lasted until one answer of a walk was whole.
  func lost(_ why: Text, by relay: RelayURL) {
    watches[relay, default: AnswerWatch(limits: limits)].lost(why)
  }

  func unanswered(_ why: Text, isSilent: Bool, by relay: RelayURL) {
    watches[relay, default: AnswerWatch(limits: limits)].unanswered(why, isSilent: isSilent)
  }

  func watch(of relay: RelayURL) -> AnswerWatch { watches[relay] ?? AnswerWatch(limits: limits) }

  func refusesKindless(_ relay: RelayURL) {
    if !kindlessServed.contains(relay) { kindsNeeded.insert(relay) }
  }

  func servesKindless(_ relay: RelayURL) { kindlessServed.insert(relay) }

  func hasServedKindless(_ relay: RelayURL) -> Bool { kindlessServed.contains(relay) }

  func needsKinds(_ relay: RelayURL) -> Bool { kindsNeeded.contains(relay) }

  func stored(_ batch: IngestBatch, _ result: IngestResult, via method: ProofMethod) async {
    switch method {
    case .negentropy: progress.viaNegentropy += result.appended
    case .paging, .live: progress.viaPaging += result.appended
    }
    for reject in batch.rejected { progress.rejected[reject.reason, default: 0] += 1 }
    progress.stored += result.appended
    progress.duplicates += firstLooks(batch, result)
    progress.received += batch.events.count + batch.rejected.count
    progress.pages += 1
    await onProgress(progress)
  }

  /// How many of the events were held already when the round was first served them.
  private func firstLooks(_ batch: IngestBatch, _ result: IngestResult) -> Int {
    zip(batch.events, result.admissions).count { verified, admission in
      let isFirst = looked.add(verified.event.id)
      return isFirst && admission == .duplicate
    }
  }

  func note(_ gaps: [CoverageGap]) {
    guard !gaps.isEmpty else { return }
    self.gaps += gaps
    unproved.formUnion(gaps.map(\.scope))
  }

  /// What of the round was proved.
  var proof: RoundProof { RoundProof(walked: walked, unproved: unproved) }

  func failed(_ error: LogError) { failure = failure ?? error }

  func needsKey(_ why: Text) { keyNeeded = keyNeeded ?? why }

  /// What a page tells of groups and people.
  func learn(groups: [Text], people: [PublicKey]) {
    for group in groups where self.groups.count < limits.groupsMax { self.groups.insert(group) }
    for person in people where self.people.count < limits.profilesMax {
      self.people.insert(person)
    }
  }

  var groupsListed: [Text] { groups.sorted() }

  /// People whose profiles were not asked for in this round yet, sorted.
  func takePeople() -> [PublicKey] {
    let fresh = people.subtracting(peopleAsked).sorted()
    peopleAsked.formUnion(fresh)
    return fresh
  }

  /// How many events the relay was seen to give in one page.
  func pageShown(by relay: RelayURL) -> Int { shown[relay] ?? 0 }

  func hasDelivered(_ relay: RelayURL) -> Bool { shown[relay] != nil }

  func delivered(by relay: RelayURL, pageShown: Int) {
    shown[relay] = max(shown[relay] ?? 0, pageShown)
  }
}
