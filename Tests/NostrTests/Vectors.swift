import Foundation
import Nostr
import Testing

/// The published vectors, read from `Tests/Vectors` beside this target.
enum Vectors {
  struct Line: Sendable, CustomTestStringConvertible {
    let name: String
    let verdict: String
    let bytes: [UInt8]
    var testDescription: String { name }
    var isAccepted: Bool { verdict.hasPrefix("accept") || verdict.hasPrefix("valid") }
  }

  struct Content: Sendable, CustomTestStringConvertible {
    let name: String
    let event: [UInt8]
    var testDescription: String { name }
  }

  static let wire: [Line] = rows("field-report-wire.jsonl").compactMap { row in
    guard let name = row["name"]?.string, let verdict = row["verdict"]?.string,
      let line = row["line"]?.string
    else { return nil }
    return Line(name: name.string, verdict: verdict.string, bytes: Array(line.utf8))
  }

  static let contents: [Content] = rows("field-report-vectors.jsonl").flatMap { row in
    let name = row["name"]?.string?.string ?? ""
    return ["event", "low", "high"].compactMap { key in
      row[key].flatMap { value in
        value["id"]?.string == nil ? nil : Content(name: "\(name) \(key)", event: value.json())
      }
    }
  }

  private static func rows(_ file: String) -> [JSONValue] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Vectors")
    guard let data = try? Data(contentsOf: folder.appendingPathComponent(file)) else {
      Issue.record("cannot read \(file)")
      return []
    }
    return data.split(separator: 0x0a).compactMap { line in
      // A line that does not parse shows as a missing row in the test that counts them.
      try? JSONValue.parse(Array(line))
    }
  }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func scan(_ text: String) throws(ScanError) -> Event { try EventScanner.event(Array(text.utf8)) }

/// The reason for which `text` is no event, or "ok".
func verdict(_ text: String) -> String {
  do throws(ScanError) {
    _ = try scan(text)
    return "ok"
  } catch {
    return error.reason
  }
}
