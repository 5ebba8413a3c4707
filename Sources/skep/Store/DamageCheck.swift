import EventLog
import Glibc
import NostrCrypto
import SyncCore
import SyncEngine

/// What a log must pass before a command writes to it: what is added to a damaged one may not be
/// found again, and its copy is worth more while nothing has been added.
///
/// It costs a fraction of a second and is bounded, so it does not stand for `verify`: the structure
/// of files of a common size, and the ids of the events that came last. Signatures are not looked at.
enum DamageCheck {
  private static let structureBytesMax = 64 << 20
  private static let eventsMax: Int64 = 20_000
  private static let chunk = 1000

  static func pass(_ folder: CommunityFolder) throws {
    try CommunityStore.refuseEmptied(folder: folder.path)
    var status = stat()
    guard stat(folder.logPath, &status) == 0, status.st_size > 0 else { return }
    let log: LogReader
    do throws(LogError) {
      log = try LogReader.open(path: folder.logPath)
    } catch {
      // What else is wrong is for the writer to say: an older schema, say, is no damage.
      guard case .damaged = error else { return }
      throw error
    }
    defer { log.close() }
    if status.st_size <= structureBytesMax, let problem = try log.structureProblem() {
      throw LogError.damaged(problem)
    }
    try checkIDs(of: log)
  }

  private static func checkIDs(of log: LogReader) throws {
    var place = LogSequence(max(0, try log.head().number - eventsMax))
    while true {
      let entries = try log.entries(after: place, limit: chunk)
      guard let last = entries.last else { return }
      for entry in entries {
        guard case .event(let logged) = entry.body, !Verifier.hasOwnID(logged.event) else {
          continue
        }
        throw LogError.damaged("entry \(entry.sequence) is not the event that its id names")
      }
      place = last.sequence
    }
  }
}
