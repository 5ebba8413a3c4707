import Nostr
import NostrCrypto
import Platform
import SyncEngine

/// What a line of a file turned out to be.
enum Verdict: Sendable {
  case verified(VerifiedEvent)
  /// The id is the one it claims, where the line has one.
  case rejected(id: EventID?, reason: String, detail: String)
}

/// Scans and verifies the lines of a file on all cores; verdicts keep the order of the lines.
struct CheckedLines {
  let verifier: Verifier
  let work: any ParallelWork

  init(work: any ParallelWork = WorkPool()) {
    verifier = Verifier()
    self.work = work
  }

  func verdicts(on block: LineBlock) async -> [Verdict] {
    let ranges = block.lines.compactMap(\.range)
    var results = await verifier.scanAndVerify(block.bytes, lines: ranges, on: work)[...]
    return block.lines.map { line in
      guard let range = line.range else {
        return .rejected(id: nil, reason: "size", detail: LineCutter.tooLong)
      }
      guard let result = results.popFirst() else {
        preconditionFailure("a line was given no verdict")
      }
      return Self.verdict(result, block.bytes[range])
    }
  }

  private static func verdict(
    _ result: Result<VerifiedEvent, LineReject>, _ line: ArraySlice<UInt8>
  ) -> Verdict {
    switch result {
    case .success(let event): return .verified(event)
    case .failure(let reject):
      // What was scanned before can be scanned again; only rejects pay for a second time.
      let claimed = if case .verify = reject { try? EventScanner.event(line) } else { Event?.none }
      return .rejected(id: claimed?.id, reason: reject.reason, detail: reject.detail)
    }
  }
}
