import Foundation
import Glibc
import Testing

/// The built program, run as a user would run it.
struct SkepProcess {
  struct Outcome {
    let code: Int32
    let stdout: Data
    let stderr: String

    var text: String { String(decoding: stdout, as: UTF8.self) }

    /// Each line of stdout as a JSON object.
    func rows(_ location: SourceLocation = #_sourceLocation) throws -> [[String: Any]] {
      try text.split(separator: "\n").map { line in
        let value = try? JSONSerialization.jsonObject(with: Data(line.utf8))
        return try #require(
          value as? [String: Any], "not a JSON object: \(line)", sourceLocation: location)
      }
    }
  }

  /// A folder of this run's own, removed with the value that holds it.
  final class Scratch {
    let path: String

    init() throws {
      var template = Array((NSTemporaryDirectory() + "/skep-test-XXXXXX").utf8CString)
      let made = template.withUnsafeMutableBufferPointer { buffer in
        buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
      }
      path = try #require(made)
    }

    deinit {
      // Left-overs of a failed test in a temporary folder do no harm.
      _ = chmod(path + "/home", 0o700)
      try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String, _ content: String) throws -> String {
      let file = path + "/" + name
      try Data(content.utf8).write(to: URL(filePath: file))
      return file
    }
  }

  let scratch: Scratch
  var environment: [String: String] = [:]

  init() throws { scratch = try Scratch() }

  var home: String { scratch.path + "/home" }

  /// Beside the test bundle's own executable.
  static var binary: String {
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(filePath: own).deletingLastPathComponent().path + "/skep"
  }

  /// Starts the program; its output goes to files, so that nothing can block on a full pipe.
  func start(
    _ arguments: [String], stdin: String? = nil, stdout: FileHandle? = nil,
    program: String = Self.binary, outputFolder: String? = nil
  ) throws -> Running {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    var variables = ["HOME": scratch.path, "SKEP_HOME": home, "TZ": "UTC", "PATH": "/usr/bin:/bin"]
    variables.merge(environment) { $1 }
    process.environment = variables
    let name = UUID().uuidString
    if let stdin {
      let path = try scratch.file(name + ".in", stdin)
      process.standardInput = try FileHandle(forReadingFrom: URL(filePath: path))
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    let folder = outputFolder ?? scratch.path
    let out = folder + "/" + name + ".out"
    let err = folder + "/" + name + ".err"
    for path in [out, err] { try Data().write(to: URL(filePath: path)) }
    process.standardOutput = try stdout ?? FileHandle(forWritingTo: URL(filePath: out))
    process.standardError = try FileHandle(forWritingTo: URL(filePath: err))
    try process.run()
    return Running(process: process, out: out, err: err)
  }

  struct Running {
    let process: Process
    let out: String
    let err: String

    /// Returns the first line of stdout as soon as it is there, or what there is at the end.
    @discardableResult
    func waitForLine() throws -> String {
      while process.isRunning {
        let text = try String(contentsOfFile: out, encoding: .utf8)
        if let end = text.firstIndex(of: "\n") { return String(text[..<end]) }
        sched_yield()
      }
      return try String(contentsOfFile: out, encoding: .utf8)
    }

    func finish() throws -> Outcome {
      process.waitUntilExit()
      // Ended by the signal is not the same as ended because of it.
      let code =
        process.terminationReason == .uncaughtSignal
        ? -process.terminationStatus : process.terminationStatus
      return Outcome(
        code: code, stdout: try Data(contentsOf: URL(filePath: out)),
        stderr: String(decoding: try Data(contentsOf: URL(filePath: err)), as: UTF8.self))
    }
  }

  func run(_ arguments: String..., stdin: String? = nil) throws -> Outcome {
    try start(arguments, stdin: stdin).finish()
  }

  /// Runs a script of the shell, to which `$0` is the program.
  func shell(_ script: String) throws -> Outcome {
    try start(["-c", script, Self.binary], program: "/bin/sh").finish()
  }
}

/// Files that stand in `Tests/Vectors`.
enum Vectors {
  static func rows(_ name: String) throws -> [[String: Any]] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: folder.appending(path: "Vectors/\(name)"), encoding: .utf8)
    return try text.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  /// An event of the vectors by its name, as a line of JSON.
  static func goodLine() throws -> String {
    let row = try #require(
      rows("field-report-wire.jsonl").first { $0["name"] as? String == "good" })
    return try #require(row["line"] as? String)
  }
}
