import Foundation
import Glibc
import Testing

/// A program at a terminal of its own.
final class Terminal {
  private let master: Int32
  private let process: Process
  private var seen = ""

  init(
    _ skep: SkepProcess, _ arguments: [String], columns: UInt16 = 80,
    variables: [String: String] = [:]
  ) throws {
    // The functions for it are hidden from Swift: TIOCSPTLCK unlocks the other end, TIOCGPTN numbers it.
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(master >= 0)
    var (locked, number): (Int32, UInt32) = (0, 0)
    try #require(
      ioctl(master, 0x4004_5431, &locked) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
    let name = "/dev/pts/\(number)"
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(master, UInt(TIOCSWINSZ), &size)
    let slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(slave >= 0)
    let handle = FileHandle(fileDescriptor: slave, closeOnDealloc: true)
    process = Process()
    process.executableURL = URL(filePath: SkepProcess.binary)
    process.arguments = arguments
    process.environment = [
      "HOME": skep.scratch.path, "SKEP_HOME": skep.home, "TZ": "UTC", "TERM": "xterm",
      "PATH": "/usr/bin:/bin", "NO_COLOR": "1",
    ].merging(variables) { $1 }
    process.standardInput = handle
    process.standardOutput = handle
    process.standardError = handle
    try process.run()
  }

  deinit {
    if process.isRunning { process.terminate() }
    close(master)
  }

  func type(_ text: String) { type(bytes: Array(text.utf8)) }

  func type(bytes: [UInt8]) { _ = write(master, bytes, bytes.count) }

  func interrupt() { process.interrupt() }

  func quit() { kill(process.processIdentifier, SIGQUIT) }

  /// Reads until `text` has been shown, and returns all that was shown up to it.
  @discardableResult
  func shows(
    _ text: String, _ location: SourceLocation = #_sourceLocation
  ) throws -> String {
    while true {
      if let range = seen.range(of: text) {
        let before = String(seen[..<range.upperBound])
        seen = String(seen[range.upperBound...])
        return before
      }
      let more = read()
      try #require(
        more != nil, "“\(text)” never came after: \(seen.debugDescription)",
        sourceLocation: location)
      seen += more ?? ""
    }
  }

  /// What is there to read, once there is something; nil where nothing comes any more.
  private func read() -> String? {
    var wait = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    guard poll(&wait, 1, 30_000) > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = Glibc.read(master, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
  }

  func finish() -> Int32 {
    process.waitUntilExit()
    return process.terminationReason == .uncaughtSignal
      ? -process.terminationStatus : process.terminationStatus
  }
}
