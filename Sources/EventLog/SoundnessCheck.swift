import NostrCrypto
import SyncCore

/// What a log must pass before anything is written to it: what is added to a damaged one may not be
/// found again, and its copy is worth more while nothing has been added.
///
/// The structure of the file and the ids of its events; signatures are for `verify`.
public struct SoundnessCheck {
  /// The events whose ids are checked before the first write; the others are checked after it.
  static let newestEvents: Int64 = 20_000
  static let chunk = 1000

  private let log: LogReader
  private let interruption: Interruption

  init(log: LogReader, interruption: Interruption) {
    self.log = log
    self.interruption = interruption
  }

  /// Reads all of the file's structure and the newest events of the log at `path`, and throws
  /// `LogError.damaged` where something is wrong.
  public static func pass(path: String, options: LogOptions = LogOptions()) throws(LogError) {
    let log = try LogReader.open(path: path, options: options)
    defer { log.close() }
    _ = try SoundnessCheck(log: log, interruption: Interruption()).newest()
  }

  /// Checks the structure and the newest events.
  ///
  /// - Returns: The entry through which the ids are still to be checked; nil when interrupted.
  func newest() throws(LogError) -> LogSequence? {
    do throws(LogError) {
      if let problem = try log.structureProblem(interruption) { throw LogError.damaged(problem) }
    } catch {
      if case .damaged = error { throw error }
      if interruption.isStopped { return nil }
      throw error
    }
    let head = try log.head()
    let before = LogSequence(max(0, head.number - Self.newestEvents))
    var place = before
    while place < head {
      if interruption.isStopped { return nil }
      place = try ids(after: place, through: head)
    }
    return before
  }

  /// Checks the ids of a chunk of entries that ends at `last`.
  ///
  /// - Returns: The entry through which they are still to be checked.
  func chunk(endingAt last: LogSequence) throws(LogError) -> LogSequence {
    let before = LogSequence(max(0, last.number - Int64(Self.chunk)))
    var place = before
    while place < last { place = try ids(after: place, through: last) }
    return before
  }

  private func ids(
    after place: LogSequence, through last: LogSequence
  ) throws(LogError) -> LogSequence {
    let entries = try log.entries(
      after: place, limit: min(Self.chunk, Int(last.number - place.number)))
    guard let end = entries.last else {
      throw LogError.damaged("entries after \(place) are missing")
    }
    for entry in entries {
      guard case .event(let logged) = entry.body, !Verifier.hasOwnID(logged.event) else { continue }
      throw LogError.damaged("entry \(entry.sequence) is not the event that its id names")
    }
    return end.sequence
  }
}
