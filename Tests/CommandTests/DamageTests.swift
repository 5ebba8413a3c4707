import Foundation
import Testing

/// A log that is damaged is told so by whoever would write to it, and nothing is written.
@Suite struct DamageTests {
  private static let community = "ws://127.0.0.1:9"

  /// A community with a log of many pages.
  private static func filled() throws -> (skep: SkepProcess, log: URL) {
    let skep = try SkepProcess()
    try skep.importDemo()
    #expect(try skep.run("verify").code == 0)
    return (skep, URL(filePath: skep.home + "/127.0.0.1:9/log.sqlite"))
  }

  private enum Harm: String, CaseIterable {
    case flips, page, content, header, empty

    func apply(to bytes: inout Data) {
      switch self {
      case .flips:
        var state: UInt64 = 7
        for _ in 0..<200 {
          state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
          let place = 4096 + Int(state >> 33) % (bytes.count - 4096)
          bytes[place] ^= 1 << UInt8(state >> 30 & 7)
        }
      case .page:
        let middle = bytes.count / 8192 * 4096
        bytes.replaceSubrange(middle..<middle + 4096, with: Data(repeating: 0xa5, count: 4096))
      case .content:
        // A letter of somebody's text, of which SQLite cannot know.
        if let place = bytes.range(of: Data("the ".utf8), options: .backwards)?.lowerBound {
          bytes[place] ^= 1
        }
      case .header: bytes.replaceSubrange(0..<100, with: Data(count: 100))
      case .empty: bytes = Data()
      }
    }
  }

  @Test(arguments: Harm.allCases)
  private func `nothing is written to a damaged log`(harm: Harm) throws {
    let (skep, log) = try Self.filled()
    var bytes = try Data(contentsOf: log)
    let whole = bytes
    harm.apply(to: &bytes)
    #expect(bytes != whole)
    try bytes.write(to: log)
    let good = try skep.scratch.file("good.jsonl", try Vectors.goodLine())
    let commands = [
      ["import", good], ["mirror", Self.community, "--fail-after", "1s"],
      ["sync", "--fail-after", "1s"], ["chat", "--offline", "--json"],
      ["relay", "add", "ws://127.0.0.1:10"], ["doctor"],
    ]
    for command in commands {
      let outcome = try skep.start(command, stdin: "/channels\n").finish()
      #expect(outcome.code == 2, "\(command): \(outcome.text) \(outcome.stderr)")
      let told = outcome.stderr + outcome.text
      #expect(told.contains("damaged") || command == ["doctor"], "\(command): \(told)")
      #expect(try Data(contentsOf: log) == bytes, "\(command) wrote")
    }
    #expect(try skep.run("verify").code == 2)
  }

  @Test func `a sound log is written to as before`() throws {
    let (skep, _) = try Self.filled()
    #expect(try skep.run("import", "-", stdin: Vectors.goodLine()).code == 0)
    #expect(try skep.run("chat", "--offline", "--json", stdin: "/channels\n").code == 0)
    #expect(try skep.run("mirror", Self.community, "--fail-after", "1s").code == 3)
    #expect(try skep.run("doctor").text.contains("structure"))
  }
}
