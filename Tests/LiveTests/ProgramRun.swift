import Dispatch
import Foundation
import Glibc

/// What a program said and how it ended.
struct ProgramRun: Sendable {
  let status: Int32
  let output: String
  let errors: String

  /// The rows of an output of one JSON object a line.
  var rows: [[String: Any]] {
    output.split(separator: "\n").compactMap { line in
      try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }
  }

  /// The last row, where commands put their summary.
  var summary: [String: Any] { rows.last ?? [:] }

  /// For the message of a failed expectation.
  var story: String { "exit \(status)\n\(output.suffix(1500))\n\(errors.suffix(1500))" }

  /// Runs a program to its end, or kills it when `seconds` have passed.
  ///
  /// - Parameter kill: Whether the end at `seconds` is wanted: SIGKILL at once, with no warning.
  static func of(
    _ path: String, _ arguments: [String], environment: [String: String] = [:],
    input: String? = nil, seconds: Double = 120, kill: Bool = false
  ) async throws -> ProgramRun {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(
          with: Result {
            try blocking(
              path, arguments, environment: environment, input: input, seconds: seconds,
              kill: kill)
          })
      }
    }
  }

  private static func blocking(
    _ path: String, _ arguments: [String], environment: [String: String], input: String?,
    seconds: Double, kill: Bool
  ) throws -> ProgramRun {
    let folder = try Scratch()
    let process = Process()
    // `timeout` bounds the run, whatever becomes of the test.
    process.executableURL = URL(filePath: "/usr/bin/timeout")
    process.arguments =
      (kill ? ["-s", "KILL"] : ["-k", "5"]) + [String(format: "%.3f", seconds), path] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = folder.path("output")
    let errors = folder.path("errors")
    for file in [output, errors] { try Data().write(to: URL(filePath: file)) }
    process.standardOutput = FileHandle(forWritingAtPath: output)
    process.standardError = FileHandle(forWritingAtPath: errors)
    if let input {
      try Data(input.utf8).write(to: URL(filePath: folder.path("input")))
      process.standardInput = FileHandle(forReadingAtPath: folder.path("input"))
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    try process.runWithSignals()
    process.waitUntilExit()
    return ProgramRun(
      status: process.terminationReason == .uncaughtSignal
        ? 128 + process.terminationStatus : process.terminationStatus,
      output: try String(contentsOfFile: output, encoding: .utf8),
      errors: try String(contentsOfFile: errors, encoding: .utf8))
  }
}

extension Process {
  /// Starts the program with no signal blocked: a child inherits the mask of the thread that starts
  /// it, and the threads that tests run on block most of them.
  func runWithSignals() throws {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try run()
  }
}

/// A folder that goes with its owner.
final class Scratch: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "skep-live-\(UUID())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    // A scratch folder that cannot be removed costs nothing but its place.
    try? FileManager.default.removeItem(at: url)
  }

  func path(_ name: String) -> String { url.appending(path: name).path }
}
