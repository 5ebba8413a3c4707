import Foundation
import Nostr
import NostrCrypto
import Testing

@testable import SyncCore

/// Sessions between nostr-sdk's client and its LocalRelay, recorded by
/// `Tests/Peers/negentropy-transcripts.py`: neither end was written here.
@Suite struct NegentropyTranscriptTests {
  struct Transcript: Sendable, CustomTestStringConvertible {
    let name: String
    let ours: [EventPosition]
    let theirs: [EventPosition]
    let frames: [(speaker: String, kept: String)]

    var testDescription: String { name }
  }

  static let transcripts: [Transcript] = {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Vectors/negentropy-nostr-sdk.jsonl")
    // A file that is missing or unreadable leaves no transcript, which a test would show.
    var text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    // Larger ones are not kept; they can be recorded and named.
    if let more = ProcessInfo.processInfo.environment["SKEP_NEGENTROPY_TRANSCRIPTS"] {
      text += (try? String(contentsOfFile: more, encoding: .utf8)) ?? ""
    }
    return text.split(separator: "\n").compactMap { transcript(String($0)) }
  }()

  private static func transcript(_ line: String) -> Transcript? {
    guard let row = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
      let name = row["name"] as? String, let items = row["items"] as? [String],
      let frames = row["frames"] as? [[String]]
    else { return nil }
    func side(_ letter: Character) -> [EventPosition] {
      items.filter { $0.dropFirst(72).contains(letter) }.compactMap { item in
        guard let time = Int64(item.prefix(8), radix: 16),
          let id = EventID(hex: item.dropFirst(8).prefix(64))
        else { return nil }
        return EventPosition(createdAt: Timestamp(time), id: id)
      }
    }
    return Transcript(
      name: name, ours: side("o"), theirs: side("t"),
      frames: frames.map { (speaker: $0[0], kept: $0[1]) })
  }

  @Test func `there are transcripts, and one goes over the frame limit`() {
    #expect(Self.transcripts.count >= 7)
    #expect(Self.transcripts.contains { $0.frames.count > 2 && $0.theirs.count > 1900 })
  }

  @Test(arguments: transcripts)
  func `both sides say byte for byte what the independent implementation says`(
    transcript: Transcript
  ) throws {
    let client = NegentropyMachine(
      set: NegentropySet(transcript.ours), isClient: true, frameBytesMax: 60_000)
    let server = NegentropyMachine(
      set: NegentropySet(transcript.theirs), isClient: false, frameBytesMax: 60_000)
    var spoken: [[UInt8]] = [client.opening()]
    var need: Set<EventID> = []
    while let last = spoken.last {
      let isQuestion = spoken.count % 2 == 1
      let step = try (isQuestion ? server : client).receive(last)
      need.formUnion(step.need)
      guard let answer = step.answer else { break }
      spoken.append(answer)
      try #require(spoken.count < 100)
    }
    #expect(spoken.map(Self.kept) == transcript.frames.map(\.kept))
    #expect(
      need == Set(transcript.theirs.map(\.id)).subtracting(transcript.ours.map(\.id)))
  }

  /// As the recorder keeps a message.
  private static func kept(_ message: [UInt8]) -> String {
    guard message.count > 4096 else { return Hex.string(message) }
    let hash = message.withUnsafeBytes { SHA256.hash($0) }
    return "sha256:\(message.count):\(hash.hex)"
  }
}
