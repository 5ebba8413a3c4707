package import Nostr
package import NostrCrypto
package import Platform

/// The demo relay: an ordinary NIP-29 relay with AUTH that holds the demo community.
package struct DemoRelay: Sendable {
  package let machine: RelayMachine
  /// Where accepted events are written down; nil where the relay lives in memory only.
  package let journal: EventJournal?

  /// Makes the community, or reads what an earlier run with the same seed left in `folder`.
  ///
  /// - Parameter folder: An existing directory; nil for a relay that forgets everything.
  package static func make(
    seed: UInt64 = 1, eventsCount: Int = 5000, folder: String? = nil, urls: [RelayURL] = [],
    rules: RelayRules = RelayRules(), version: Text = "0", on work: any ParallelWork
  ) async throws(DemoError) -> DemoRelay {
    var journal: EventJournal?
    var events: [Event] = []
    if let folder {
      (journal, events) = try open("\(folder)/demo-relay-\(seed).jsonl")
    }
    let relayKey: SecretKey
    if events.isEmpty {
      let community = try await community(seed, eventsCount, on: work)
      relayKey = community.relayKey
      events = community.events
      if let journal { try write(events, to: journal) }
    } else {
      relayKey = DemoStory(seed: seed, eventsCount: 0).relayKey
    }
    let verifier = Verifier()
    let identity = RelayIdentity(
      name: "Skep demo", about: "A made-up community; nothing in it is real.", urls: urls,
      signer: RelaySigner(relayKey), version: version)
    var machine = RelayMachine(identity: identity, rules: rules) {
      (try? verifier.verify($0)) != nil
    }
    do throws(RelayStoreError) {
      try machine.load(events)
    } catch {
      throw .store(error)
    }
    return DemoRelay(machine: machine, journal: journal)
  }

  private static func open(_ path: String) throws(DemoError) -> (EventJournal, [Event]) {
    do throws(JournalError) {
      return try EventJournal.open(path: path)
    } catch {
      throw .journal(error)
    }
  }

  private static func write(_ events: [Event], to journal: EventJournal) throws(DemoError) {
    do throws(JournalError) {
      try journal.append(events)
    } catch {
      throw .journal(error)
    }
  }

  private static func community(
    _ seed: UInt64, _ eventsCount: Int, on work: any ParallelWork
  ) async throws(DemoError) -> DemoCommunity {
    do throws(SignerError) {
      return try await DemoCommunity.make(seed: seed, eventsCount: eventsCount, on: work)
    } catch {
      throw .signing(error)
    }
  }
}

/// Why a demo relay could not be made.
package enum DemoError: Error, Sendable, CustomStringConvertible {
  case journal(JournalError)
  case signing(SignerError)
  case store(RelayStoreError)

  package var description: String {
    switch self {
    case .journal(let error): error.description
    case .signing(let error): "the demo community could not be signed: \(error)"
    case .store(let error): "the demo community could not be loaded: \(error)"
    }
  }
}
