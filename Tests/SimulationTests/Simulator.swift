import Foundation
import Nostr

/// The program that was built beside these tests, run in processes of its own.
///
/// Worlds never run in the process of the tests: they put Swift's concurrency under a scheduler that
/// knows no real time, and other tests keep real deadlines.
enum Simulator {
  struct Finished {
    let code: Int32
    let data: String
    let talk: String

    var lines: [Substring] { data.split(separator: "\n") }

    /// What the program says of each world that it ran.
    func worlds() throws -> [World] {
      try lines.compactMap { line in
        let value = try JSONValue.parse(Array(line.utf8))
        guard let verdict = value["verdict"]?.string else { return nil }
        let faults = value["faults"]?.members ?? []
        return World(
          line: String(line), verdict: verdict, seed: value["seed"]?.int ?? -1,
          faults: Set(faults.map(\.0)), traceHash: value["trace_hash"]?.string ?? "")
      }
    }
  }

  struct World: Equatable {
    let line: String
    let verdict: Text
    let seed: Int64
    let faults: Set<Text>
    let traceHash: Text
  }

  private static var program: URL {
    let tests = URL(filePath: CommandLine.arguments[0])
    return tests.deletingLastPathComponent().appending(path: "skep-sim")
  }

  static func run(_ arguments: String...) throws -> Finished { try run(arguments) }

  static func run(_ arguments: [String]) throws -> Finished {
    let process = Process()
    let data = Pipe()
    process.executableURL = program
    process.arguments = arguments
    process.standardOutput = data
    // A file and not a second pipe: nobody reads that one while the first is being read.
    let talkFile = temporaryFile("talk")
    defer { try? FileManager.default.removeItem(atPath: talkFile) }
    _ = FileManager.default.createFile(atPath: talkFile, contents: nil)
    process.standardError = try FileHandle(forWritingTo: URL(filePath: talkFile))
    try process.run()
    let output = data.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let talk = try Data(contentsOf: URL(filePath: talkFile))
    return Finished(
      code: process.terminationStatus, data: String(decoding: output, as: UTF8.self),
      talk: String(decoding: talk, as: UTF8.self))
  }

  static func temporaryFile(_ name: String) -> String {
    FileManager.default.temporaryDirectory.appending(path: "\(UUID())-\(name)").path()
  }

  /// Runs a storm that is written down.
  static func run(storm text: String, _ arguments: String...) throws -> Finished {
    let file = temporaryFile("kept.storm")
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data(text.utf8).write(to: URL(filePath: file))
    return try run(["run", file] + arguments)
  }
}
