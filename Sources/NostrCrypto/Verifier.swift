public import Nostr
public import Platform

/// Why an event is not what it claims to be.
public enum VerifyFailure: Error, Hashable, Sendable {
  /// The id is not the hash of the event in any known form.
  case id
  /// The id is right, and the signature is not its author's.
  case signature

  /// The word that verdicts and counters use.
  public var reason: String {
    switch self {
    case .id: "id"
    case .signature: "signature"
    }
  }
}

/// Why a line of JSON is not a verified event.
public enum LineReject: Error, Sendable {
  case scan(ScanError)
  case verify(VerifyFailure)

  /// The word that verdicts and counters use.
  public var reason: String {
    switch self {
    case .scan(let error): error.reason
    case .verify(let failure): failure.reason
    }
  }

  /// What is wrong, for people, without that word.
  public var detail: String {
    switch self {
    case .scan(let error): error.detail
    case .verify(.id): "the id is not the hash of the event"
    case .verify(.signature): "the signature is not the author's"
    }
  }
}

/// The only door through which an `Event` becomes a `VerifiedEvent`.
///
/// It recomputes the id and checks the signature over it. Both are needed: a relay can swap the
/// content and keep a signature that still fits the old id. Any thread may ask; a batch gives the
/// same results in the same order whatever it runs on.
public final class Verifier: Sendable {
  private let authors: AuthorKeys
  private let known: KnownEvents?

  /// - Parameter authorsMax: How many parsed author keys to keep, about 100 bytes each.
  public init(authorsMax: Int = 4096) {
    authors = AuthorKeys(authorsMax: authorsMax)
    known = nil
  }

  /// One that remembers what it vouched for, for a simulation, where many parties check the same
  /// events and the answer depends on their bytes alone.
  ///
  /// - Parameter verdictsMax: How many events are remembered, with all their bytes.
  package init(verdictsMax: Int) {
    authors = AuthorKeys(authorsMax: 4096)
    known = KnownEvents(max: verdictsMax)
  }

  /// Whether the id is the event's own: a tenth of the work of `verify`, and no proof of who wrote it.
  public static func hasOwnID(_ event: Event) -> Bool { EventHash.form(of: event) != nil }

  public func verify(_ event: Event) throws(VerifyFailure) -> VerifiedEvent {
    try verdict(on: event).get()
  }

  /// The verdict on every event, in the order given.
  public func verify(
    _ events: [Event], on work: any ParallelWork
  ) async -> [Result<VerifiedEvent, VerifyFailure>] {
    await Batch.map(count: events.count, on: work) { self.verdict(on: events[$0]) }
  }

  /// Scans and verifies one line of JSON each, in the order given.
  ///
  /// - Parameters:
  ///   - bytes: A piece of a file.
  ///   - lines: Where in `bytes` each line stands, without its line feed.
  public func scanAndVerify(
    _ bytes: [UInt8], lines: [Range<Int>], on work: any ParallelWork
  ) async -> [Result<VerifiedEvent, LineReject>] {
    await Batch.map(count: lines.count, on: work) { index in
      bytes.withUnsafeBytes {
        self.verdict(onLine: UnsafeRawBufferPointer(rebasing: $0[lines[index]]))
      }
    }
  }

  /// Scans and verifies one line of JSON.
  public func scanAndVerify(
    _ line: UnsafeRawBufferPointer
  ) throws(LineReject) -> VerifiedEvent {
    try verdict(onLine: line).get()
  }

  private func verdict(onLine line: UnsafeRawBufferPointer) -> Result<VerifiedEvent, LineReject> {
    do throws(ScanError) {
      return verdict(on: try EventScanner.event(line)).mapError { .verify($0) }
    } catch {
      return .failure(.scan(error))
    }
  }

  private func verdict(on event: Event) -> Result<VerifiedEvent, VerifyFailure> {
    if let vouched = known?.verified(event) { return .success(vouched) }
    guard let form = EventHash.form(of: event) else { return .failure(.id) }
    guard var author = authors.parsed(event.pubkey),
      Curve.shared.isValid(event.sig, over: event.id.bytes, by: &author)
    else { return .failure(.signature) }
    let verified = VerifiedEvent(vouchedFor: event, idForm: form)
    known?.remember(verified)
    return .success(verified)
  }
}
