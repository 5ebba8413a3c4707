import Platform
import SyncCore

/// The entries committed last, shared by the writer and its readers: whoever follows the log
/// closely takes them from here, and nothing that was just encoded is decoded again.
final class LogTail: Sendable {
  private let state: Lock<State>

  private struct State {
    let entriesMax: Int
    let bytesMax: Int
    var head: LogSequence
    /// Consecutive, the last of them at `head`; those before `first` were dropped.
    var entries: [LogEntry] = []
    var sizes: [Int] = []
    var first = 0
    var bytes = 0

    mutating func append(_ added: [LogEntry], sizes addedSizes: [Int]) {
      entries.append(contentsOf: added)
      sizes.append(contentsOf: addedSizes)
      bytes += addedSizes.reduce(0, +)
      while entries.count - first > entriesMax || (bytes > bytesMax && first < entries.count) {
        bytes -= sizes[first]
        first += 1
      }
      // Moving the rest to the front only when most of the array is dead costs each entry one move.
      if first > entries.count / 2 {
        entries.removeSubrange(..<first)
        sizes.removeSubrange(..<first)
        first = 0
      }
    }

    mutating func clear() {
      entries = []
      sizes = []
      first = 0
      bytes = 0
    }
  }

  init(options: LogOptions, head: LogSequence) {
    state = Lock(
      State(entriesMax: options.tailEntriesMax, bytesMax: options.tailBytesMax, head: head))
  }

  var head: LogSequence { state.withLock { $0.head } }

  /// Takes in what was just committed. `sizes` has about the bytes that each entry keeps alive.
  func append(_ entries: [LogEntry], sizes: [Int], head: LogSequence) {
    state.withLock { state in
      if let last = state.entries.last, let first = entries.first,
        last.sequence.next != first.sequence
      {
        // Another process wrote in between: what is here no longer joins what comes.
        state.clear()
      }
      state.append(entries, sizes: sizes)
      state.head = head
    }
  }

  /// The entries after `sequence`, or nil where the first of them is not here.
  func entries(after sequence: LogSequence, limit: Int) -> [LogEntry]? {
    state.withLock { state -> [LogEntry]? in
      let held = state.entries[state.first...]
      guard let first = held.first, let last = held.last, first.sequence <= sequence.next,
        sequence < last.sequence
      else { return nil }
      let skipped = Int(sequence.number - first.sequence.number + 1)
      return Array(held.dropFirst(skipped).prefix(limit))
    }
  }
}
