import Glibc
import Platform

/// The program's stderr: talk and progress, never data.
///
/// Whatever is said is made fit for a terminal here, because it may quote a relay or a file.
final class Talk {
  private let isQuiet: Bool
  let isVerbose: Bool
  private let isTerminal: Bool
  private var progressCells = 0
  private var lastProgress: Duration = .zero
  private let started = ContinuousClock.now

  init(isQuiet: Bool, isVerbose: Bool) {
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
    isTerminal = isatty(STDERR_FILENO) == 1
  }

  /// Something worth knowing.
  func say(_ text: String) {
    if !isQuiet { put(text) }
  }

  func detail(_ text: String) {
    if isVerbose { put(text) }
  }

  /// Why the command fails; said even when quiet.
  func complain(_ text: String) { put("skep: " + text) }

  /// Replaces the progress line, at most ten times a second.
  func progress(_ text: @autoclosure () -> String) {
    guard isTerminal, !isQuiet else { return }
    let now = started.duration(to: .now)
    guard progressCells == 0 || now - lastProgress >= .milliseconds(100) else { return }
    lastProgress = now
    let line = SafeText.line(text(), cells: max(20, Self.columns() - 1))
    write("\r" + line + String(repeating: " ", count: max(0, progressCells - CellWidth.of(line))))
    progressCells = CellWidth.of(line)
  }

  func endProgress() {
    guard progressCells > 0 else { return }
    write("\r" + String(repeating: " ", count: progressCells) + "\r")
    progressCells = 0
  }

  private func put(_ text: String) {
    endProgress()
    write(SafeText.line(text) + "\n")
  }

  private func write(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
      // Nobody may be listening, and there is no other place to say so.
      if count <= 0 && errno != EINTR { return }
      bytes = bytes.dropFirst(max(0, count))
    }
  }

  /// The width of the terminal, or 80 where it does not say.
  static func columns(of descriptor: Int32 = STDERR_FILENO) -> Int {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }
}

/// A progress line that several threads may move on.
final class ProgressLine: Sendable {
  private struct State {
    var progress = Progress()
    let talk: Talk
  }

  private let state: Lock<State>

  init(total: Int?, isQuiet: Bool) {
    var progress = Progress()
    progress.total = total
    state = Lock(State(progress: progress, talk: Talk(isQuiet: isQuiet, isVerbose: false)))
  }

  func show(_ what: String, done: Int, part: Int? = nil) {
    state.withLock { state in
      state.talk.progress(state.progress.line(what, done: done, part: part))
    }
  }

  func end() { state.withLock { $0.talk.endProgress() } }
}

/// The numbers of a progress line.
struct Progress {
  private let started = ContinuousClock.now
  /// How much there is in all, where that is known, in the unit of `part`.
  var total: Int?

  /// - Parameters:
  ///   - done: How many things are done.
  ///   - part: How much of `total` that is; the same as `done` where nil.
  func line(_ what: String, done: Int, part: Int? = nil) -> String {
    let seconds = max(0.001, Self.seconds(started.duration(to: .now)))
    var words = ["\(what): \(Self.grouped(done))"]
    let part = part ?? done
    if let total, total > 0 {
      words.append("\(min(100, part * 100 / total)) %")
      let left = part > 0 ? seconds * Double(max(0, total - part)) / Double(part) : 0
      if part > 0 { words.append(Self.time(left) + " left") }
    }
    words.append("\(Self.grouped(Int(Double(done) / seconds)))/s")
    return words.joined(separator: ", ")
  }

  var elapsed: Double { max(1e-6, Self.seconds(started.duration(to: .now))) }

  static func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
  }

  static func time(_ seconds: Double) -> String {
    let whole = Int(min(seconds, 8_640_000).rounded(.up))
    if whole < 60 { return "\(whole)s" }
    if whole < 3600 { return "\(whole / 60)m \(whole % 60)s" }
    return "\(whole / 3600)h \(whole / 60 % 60)m"
  }

  /// Thousands apart.
  static func grouped(_ number: Int) -> String {
    var digits = Array(String(number.magnitude))
    var index = digits.count - 3
    while index > 0 {
      digits.insert(" ", at: index)
      index -= 3
    }
    return (number < 0 ? "-" : "") + String(digits)
  }
}
