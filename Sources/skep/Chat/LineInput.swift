import SyncEngine

/// Where the line client's lines come from.
protocol LineInput: AnyObject {
  /// The next line without its end; nil at the end of the input or after a stop.
  func next() async throws -> InputLine?
}

enum InputLine {
  case line(String)
  /// Something has happened that is shown above the line, which is still being typed.
  case rung
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
      do throws(ByteSourceError) {
        if let piece = try await source.next() {
          cutter.append(piece[...])
        } else {
          cutter.finish()
          isAtEnd = true
        }
      } catch {
        // Half a line is nothing that somebody meant to send.
        guard error == .stopped else { throw error }
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
