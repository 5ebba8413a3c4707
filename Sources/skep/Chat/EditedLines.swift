import CEdit
import Glibc
import Platform

/// Lines typed at a terminal, with editing and history by libedit.
///
/// libedit is given one key at a time; the wait for keys is on a thread of its own, so that a line
/// half typed holds nothing up.
final class EditedLines: LineInput {
  /// What to ring when there is something to show.
  let bell = Bell()
  private let edit: OpaquePointer
  private let past: OpaquePointer?
  private let keyboard: Keyboard
  private let canMoveCursor: Bool
  private var isEditing = false
  /// As wide as the terminal was when libedit last looked.
  private var columns = Talk.columns(of: STDOUT_FILENO)
  private static let historyMax: Int32 = 500

  /// Nil where libedit cannot use the terminal.
  init?(stop: Stop, terminal: String?) {
    guard let edit = skep_el_open({ _ in EditedLines.prompt }) else { return nil }
    self.edit = edit
    TypedCharacters.read(for: edit)
    past = skep_history_open(edit, Self.historyMax)
    keyboard = Keyboard(bell: bell.descriptor, stop: stop.descriptor)
    canMoveCursor = terminal.map { !$0.isEmpty && $0 != "dumb" } ?? false
  }

  deinit {
    if isEditing { skep_el_end_line(edit) }
    el_end(edit)
  }

  // libedit wants a pointer that outlives the call.
  nonisolated(unsafe) private static let prompt: UnsafeMutablePointer<CChar>? = strdup("> ")
  private static let promptCells = 2
  private static let endKey: UInt8 = 0x04

  func next() async throws -> InputLine? {
    if !isEditing {
      skep_el_begin(edit)
      isEditing = true
    }
    while true {
      switch await keyboard.wait() {
      case .rung:
        bell.silence()
        return .rung
      case .stopped:
        endLine()
        return nil
      case .key(let isLast):
        switch takeKey() {
        case .line(let line): return line
        case .end: return nil
        case .more:
          guard isLast else { continue }
          endLine()
          return nil
        }
      }
    }
  }

  private enum Taken {
    case line(InputLine)
    case end
    case more
  }

  private func takeKey() -> Taken {
    let columns = Talk.columns(of: STDOUT_FILENO)
    if columns != self.columns { el_resize(edit) }
    self.columns = columns
    var count: Int32 = 0
    guard let bytes = el_gets(edit, &count), count > 0 else { return .more }
    // The key that ends the input comes back alone, where it was typed into an empty line.
    if count == 1, UInt8(bitPattern: bytes[0]) == Self.endKey {
      endLine()
      return .end
    }
    guard bytes[Int(count) - 1] == 0x0a || bytes[Int(count) - 1] == 0x0d else { return .more }
    let text = TypedCharacters.takeFault() ? nil : String(validatingCString: bytes)
    if let past, let text, text.contains(where: { !$0.isWhitespace }) {
      skep_history_enter(past, bytes)
    }
    endLine()
    guard let text else { return .line(.notUTF8) }
    return .line(.line(String(text.dropLast())))
  }

  /// Gives the terminal back as it was.
  private func endLine() {
    guard isEditing else { return }
    isEditing = false
    skep_el_end_line(edit)
  }

  /// Takes the line that is being typed off the screen while `write` writes, then puts it back.
  func above(_ write: () throws -> Void) throws {
    guard isEditing else { return try write() }
    put(canMoveCursor ? Self.erasure(rowsAbove: rowsAboveCursor) : "\n")
    try write()
    skep_el_redraw(edit)
  }

  /// To the beginning of the first row of the line, and nothing left below.
  static func erasure(rowsAbove: Int) -> String {
    (rowsAbove > 0 ? "\u{1b}[\(rowsAbove)A" : "") + "\r\u{1b}[J"
  }

  private var rowsAboveCursor: Int {
    guard let info = el_line(edit), let start = info.pointee.buffer,
      let cursor = info.pointee.cursor
    else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: start, count: max(0, cursor - start))
    let cells = Self.promptCells + CellWidth.of(String(decoding: bytes, as: UTF8.self))
    return cells / max(1, Talk.columns(of: STDOUT_FILENO))
  }

  private func put(_ text: String) {
    let bytes = Array(text.utf8)
    // The next write to the terminal would say what is wrong with it.
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }
}

/// Wakes whoever waits for a key. Ringing it again before it was heard changes nothing.
final class Bell: Sendable {
  let descriptor: Int32
  private let clapper: Int32

  init() {
    var pair: [Int32] = [-1, -1]
    let made = pipe(&pair)
    precondition(made == 0, "a pipe could not be made")
    // Neither ringing twice nor hearing nothing may wait.
    for end in pair { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    descriptor = pair[0]
    clapper = pair[1]
  }

  deinit {
    close(descriptor)
    close(clapper)
  }

  func ring() {
    var byte: UInt8 = 1
    // A full pipe has been rung already.
    _ = write(clapper, &byte, 1)
  }

  func silence() {
    var bytes = [UInt8](repeating: 0, count: 512)
    while read(descriptor, &bytes, bytes.count) > 0 {}
  }
}

/// The thread that waits for a key, the bell or a stop.
private actor Keyboard {
  enum Happening {
    /// - Parameter isLast: The terminal has gone, and only what was typed before is left.
    case key(isLast: Bool)
    case rung
    case stopped
  }

  private let executor = ThreadExecutor()
  private let bell: Int32
  private let stop: Int32

  init(bell: Int32, stop: Int32) {
    self.bell = bell
    self.stop = stop
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func wait() -> Happening {
    var waits = [stop, STDIN_FILENO, bell].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    while poll(&waits, nfds_t(waits.count), -1) < 0 && errno == EINTR {}
    if waits[0].revents != 0 { return .stopped }
    if waits[1].revents != 0 {
      let isGone = waits[1].revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0
      var left: Int32 = 0
      let isKnown = ioctl(STDIN_FILENO, UInt(FIONREAD), &left) == 0
      return .key(isLast: isGone && (!isKnown || left == 0))
    }
    return .rung
  }
}
