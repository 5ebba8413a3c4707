import Nostr
import NostrCrypto

/// Every step of a run as a line; two runs that did the same have the same hash.
package final class Trace {
  private static let tailMax = 40

  private let stream = SHA256Stream()
  private let sink: (([UInt8]) -> Void)?
  /// The last lines, for whoever reads about a failure.
  package private(set) var tail: [String] = []

  /// - Parameter sink: Gets every line with its end, such as a file.
  package init(sink: (([UInt8]) -> Void)? = nil) { self.sink = sink }

  func add(_ time: Duration, _ text: String) {
    let (seconds, attoseconds) = time.components
    let micros = String(attoseconds / 1_000_000_000_000)
    let line = "\(seconds).\(String(repeating: "0", count: 6 - micros.count))\(micros) \(text)"
    let bytes = Array(line.utf8) + [0x0a]
    stream.update(bytes)
    sink?(bytes)
    tail.append(line)
    if tail.count > Trace.tailMax { tail.removeFirst() }
  }

  /// The SHA-256 of all lines; afterwards the trace is empty again.
  func finish() -> String { stream.finish().hex }
}
