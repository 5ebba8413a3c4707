import Glibc
import Nostr
import Platform
import SyncEngine

/// The lines that were refused: the first are named, and all go to the file, if there is one.
final class Refusals: Sendable {
  private struct State {
    var file: AtomicFile?
    /// What is too long to be held in memory waits here for its place among the others.
    var long: LongLines?
    var count = 0
    var problem: (any Error)?
    let talk: Talk
  }

  private let state: Lock<State>
  /// Whether there is a file that takes them all.
  let keepsAll: Bool
  private static let namedMax = 100

  init(path: String?, isQuiet: Bool) throws {
    keepsAll = path != nil
    state = Lock(
      State(
        file: try path.map { try AtomicFile($0) }, long: path.map { LongLines(beside: $0) },
        talk: Talk(isQuiet: isQuiet, isVerbose: false)))
  }

  func take(_ line: RejectedLine) {
    state.withLock { state in
      state.count += 1
      if state.count <= Self.namedMax {
        let detail = SafeText.line(line.detail ?? "", cells: 160)
        state.talk.say("line \(line.number): \(line.reason): \(detail)")
      }
      guard state.problem == nil, let file = state.file else { return }
      do {
        if let bytes = line.bytes {
          try file.write(bytes + [UInt8(ascii: "\n")])
        } else {
          try state.long?.copy(line.number, to: file)
        }
      } catch { state.problem = error }
    }
  }

  /// Takes a piece of a line that is too long to be held.
  func take(_ number: Int, piece: ArraySlice<UInt8>) {
    state.withLock { state in
      guard state.problem == nil else { return }
      do { try state.long?.append(piece, of: number) } catch { state.problem = error }
    }
  }

  func finish() throws {
    let problem = state.withLock { state -> (any Error)? in
      let more = state.count - Self.namedMax
      if more > 0 { state.talk.say("and \(more) more lines were refused") }
      guard state.problem == nil else { return state.problem }
      do { try state.file?.finish() } catch { return error }
      return nil
    }
    if let problem { throw problem }
  }
}

/// Lines of any length in a file without a name, which goes with the process.
struct LongLines {
  private let place: String
  private var descriptor: Descriptor?
  private var lengths: [(number: Int, bytes: Int)] = []
  private var readFrom = 0

  private static let pieceBytes = 1 << 20

  private final class Descriptor {
    let number: Int32
    init(_ number: Int32) { self.number = number }
    deinit { close(number) }
  }

  /// - Parameter path: Where there is room for them.
  init(beside path: String) { place = path }

  mutating func append(_ piece: ArraySlice<UInt8>, of number: Int) throws {
    let file = try descriptor ?? open()
    descriptor = file
    if lengths.last?.number != number { lengths.append((number, 0)) }
    lengths[lengths.count - 1].bytes += piece.count
    var rest = piece
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(file.number, $0.baseAddress, $0.count) }
      guard count >= 0 || errno == EINTR else { throw failure() }
      rest = rest.dropFirst(max(0, count))
    }
  }

  /// Copies the next line, which must be this one, with a line feed.
  mutating func copy(_ number: Int, to target: AtomicFile) throws {
    guard let next = lengths.first, next.number == number, let descriptor else {
      throw Failure(.io, "line \(number) is too long, and its bytes could not be kept")
    }
    lengths.removeFirst()
    var left = next.bytes
    while left > 0 {
      let wanted = min(left, Self.pieceBytes)
      var code: Int32 = 0
      let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
        let got = pread(descriptor.number, buffer.baseAddress, wanted, readFrom)
        code = got < 0 ? errno : 0
        count = max(0, got)
      }
      if code == EINTR { continue }
      guard !piece.isEmpty else { throw failure() }
      try target.write(piece)
      readFrom += piece.count
      left -= piece.count
    }
    try target.write([UInt8(ascii: "\n")])
  }

  private func open() throws -> Descriptor {
    for start in [place, "/tmp/skep"] {
      var template = Array((start + ".long-XXXXXX").utf8CString)
      let made = mkstemp(&template)
      guard made >= 0 else { continue }
      _ = fcntl(made, F_SETFD, FD_CLOEXEC)
      unlink(template)
      return Descriptor(made)
    }
    throw failure()
  }

  private func failure() -> Failure {
    SystemError.failure(errno, doing: "a line that is too long for memory cannot be kept")
  }
}
