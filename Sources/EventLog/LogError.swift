/// Why the log could not do what it was asked for. Whatever is thrown, nothing of the operation was
/// kept, and the log can be asked again.
public enum LogError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file was written by a later version of the program.
  case newer(found: Int, known: Int)
  /// The file is a log, and its content is broken.
  case damaged(String)
  /// The file is something else.
  case notALog(String)
  /// There is no such file.
  case missing(String)
  /// There is no such file, and there was one with so many entries.
  case lost(path: String, entries: Int64)
  case full(String)
  case readOnly(String)
  /// Another process kept the file locked for longer than the busy timeout.
  case busy(String)
  case io(String)
  /// A migration of the program, or one that the file went through, is not the one released.
  case migrationChanged(Int)
  case unknownMessage(String)
  /// A relay has the message, so it cannot be given up any more.
  case alreadySent(String)
  /// Events of ephemeral kinds are never stored, so they cannot wait in the outbox.
  case ephemeral
  case closed

  public var description: String {
    switch self {
    case .newer(let found, let known):
      "the log has schema version \(found) and this program knows versions up to \(known): "
        + "use the version of skep that wrote it, or a later one; the file was not touched"
    case .damaged(let what):
      "the log is damaged (\(what)): keep a copy of the file, then restore a backup or mirror "
        + "into a new home; nothing more is written to it"
    case .notALog(let path):
      "\(path) is not a log of skep: choose another home, or move the file away"
    case .missing(let path): "there is no log at \(path)"
    case .lost(let path, let entries):
      "the log is gone: \(path) is missing, and had \(entries) entries: put the file back from a "
        + "backup, or, to begin anew without what it held, move its folder away and mirror again; "
        + "nothing was written"
    case .full(let what):
      "the disk is full (\(what)): free some space and try again; nothing already stored is lost"
    case .readOnly(let path):
      "\(path) cannot be written: make it and its folder writable, or choose another home"
    case .busy(let path):
      "\(path) is locked by another process: wait for it, or end it, and try again"
    case .io(let what): "the log could not be read or written: \(what)"
    case .migrationChanged(let number):
      "migration \(number) is not the one that was released: use an unchanged version of skep"
    case .unknownMessage(let name): "there is no message \(name) in the outbox"
    case .alreadySent(let name):
      "message \(name) was sent: a relay has it, so it cannot be discarded; “/delete” in “skep chat” "
        + "asks the relay to take it away"
    case .ephemeral: "an event of an ephemeral kind is never stored, so it cannot be queued"
    case .closed: "the log is closed"
    }
  }
}
