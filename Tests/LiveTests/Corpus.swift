import Foundation
import Testing

/// The generated events that the tests load relays with, made once a run.
enum Corpus {
  /// A file of `count` events, the last of them an hour old.
  static func file(_ count: Int = Live.eventCount) async throws -> String {
    try await store.file(count)
  }

  private static let store = Store()

  private actor Store {
    private var files: [Int: String] = [:]
    private var scratch: Scratch?

    func file(_ count: Int) async throws -> String {
      if let file = files[count] { return file }
      let folder = try scratch ?? Scratch()
      scratch = folder
      let path = folder.path("corpus-\(count).jsonl")
      _ = try await Live.peer("corpus.py", [path, "--count", "\(count)", "--seed", "1"])
      files[count] = path
      return path
    }
  }
}
