import CEdit
import Glibc
import SyncEngine

/// Where the line client's lines come from.
protocol LineInput: AnyObject {
  /// The next line without its end; nil at the end of the input or after a stop.
  func next() async throws -> InputLine?
}

enum InputLine {
  case line(String)
  case tooLong(limit: Int)
  case notUTF8
}

/// Lines of a pipe or a file.
final class PlainLines: LineInput {
  private let source: ByteSource
  private var cutter = LineCutter(lineBytesMax: PlainLines.lineBytesMax)
  private var ready: [InputLine] = []
  private var isAtEnd = false

  /// Twice what a message may hold.
  private static let lineBytesMax = 128 * 1024

  init(stop: Stop) throws { source = try ByteSource(path: "-", stop: stop) }

  func next() async throws -> InputLine? {
    while ready.isEmpty && !isAtEnd {
      if let piece = try await source.next() {
        cutter.append(piece)
      } else {
        cutter.finish()
        isAtEnd = true
      }
      let block = cutter.take()
      ready = block.lines.map { line in
        guard let range = line.range else { return .tooLong(limit: Self.lineBytesMax) }
        guard let text = String(validating: block.bytes[range], as: UTF8.self) else {
          return .notUTF8
        }
        return .line(text)
      }
      ready.reverse()
    }
    return ready.popLast()
  }
}

/// Lines typed at a terminal, with editing and history by libedit.
///
/// Reading blocks the program's main thread, on which nothing else waits; the engine runs on others.
final class EditedLines: LineInput {
  private let edit: OpaquePointer
  private let past: OpaquePointer?
  private static let historyMax: Int32 = 500

  /// Nil where libedit cannot use the terminal.
  init?(stop: Stop) {
    guard let edit = skep_el_open({ _ in EditedLines.prompt }) else { return nil }
    self.edit = edit
    TypedCharacters.read(for: edit)
    past = skep_history_open(edit, Self.historyMax)
    var before = termios()
    let isKnown = tcgetattr(STDIN_FILENO, &before) == 0
    let terminal = before
    // A signal cannot wake a read that libedit repeats. What was committed is safe, so the
    // terminal is given back and the program ends where it stands.
    stop.onRequest {
      var terminal = terminal
      if isKnown { tcsetattr(STDIN_FILENO, TCSANOW, &terminal) }
      _exit((stop.code ?? .interrupted).rawValue)
    }
  }

  deinit { el_end(edit) }

  // libedit wants a pointer that outlives the call.
  nonisolated(unsafe) private static let prompt: UnsafeMutablePointer<CChar>? = strdup("> ")

  func next() async throws -> InputLine? {
    var count: Int32 = 0
    guard let bytes = el_gets(edit, &count), count > 0 else { return nil }
    guard !TypedCharacters.takeFault(), let text = String(validatingCString: bytes) else {
      return .notUTF8
    }
    let line = text.last == "\n" ? String(text.dropLast()) : text
    if let past, line.contains(where: { !$0.isWhitespace }) { skep_history_enter(past, bytes) }
    return .line(line)
  }
}
