import Foundation
import Nostr
import Testing

/// The published vectors, read from `Tests/Vectors` beside this target.
enum Vectors {
  /// One row of BIP-340's table; rows whose key does not parse have no message.
  struct Schnorr: Sendable, CustomTestStringConvertible {
    let index: Int
    let secret: [UInt8]
    let key: PublicKey
    let auxiliary: [UInt8]
    let message: Bytes32?
    let signature: Signature?
    let isValid: Bool
    var testDescription: String { "vector \(index)" }
  }

  static let schnorr: [Schnorr] = text("bip340.csv").split(separator: "\n").dropFirst()
    .compactMap { line in
      let fields = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      guard fields.count >= 7, let index = Int(fields[0]), let key = PublicKey(hex: fields[2])
      else { return nil }
      return Schnorr(
        index: index, secret: Hex.bytes(fields[1].utf8) ?? [], key: key,
        auxiliary: Hex.bytes(fields[3].utf8) ?? [], message: Bytes32(hex: fields[4]),
        signature: Signature(hex: fields[5]),
        isValid: fields[6] == "TRUE")
    }

  struct Line: Sendable, CustomTestStringConvertible {
    let name: String
    let verdict: String
    let bytes: [UInt8]
    var testDescription: String { name }
    var isAccepted: Bool { verdict.hasPrefix("accept") || verdict.hasPrefix("valid") }
  }

  static let wire: [Line] = rows("field-report-wire.jsonl").compactMap { row in
    guard let name = row["name"]?.string, let verdict = row["verdict"]?.string,
      let line = row["line"]?.string
    else { return nil }
    return Line(name: name.string, verdict: verdict.string, bytes: Array(line.utf8))
  }

  /// One content under six serialisers.
  struct Content: Sendable, CustomTestStringConvertible {
    let row: JSONValue
    var testDescription: String { row["name"]?.string?.string ?? "" }
    var event: Event? { row["event"].flatMap { try? EventScanner.event($0.json()) } }

    func id(_ serialiser: Text) -> EventID? {
      row[serialiser]?.string.flatMap { EventID(hex: $0.string) }
    }
  }

  static let contents = rows("field-report-vectors.jsonl").map { Content(row: $0) }
    .filter { $0.event != nil }

  /// A document of the folder that `SKEP_VECTORS` names: vectors that are not ours to copy.
  static func outside(_ file: String) -> [UInt8]? {
    guard let folder = ProcessInfo.processInfo.environment["SKEP_VECTORS"], !folder.isEmpty
    else { return nil }
    // An unreadable file shows where the vectors are counted.
    return (try? Data(contentsOf: URL(fileURLWithPath: folder).appendingPathComponent(file)))
      .map { Array($0) }
  }

  static func bytes(_ file: String) -> [UInt8] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Vectors")
    guard let data = try? Data(contentsOf: folder.appendingPathComponent(file)) else {
      Issue.record("cannot read \(file)")
      return []
    }
    return Array(data)
  }

  private static func text(_ file: String) -> String {
    String(decoding: bytes(file), as: UTF8.self)
  }

  private static func rows(_ file: String) -> [JSONValue] {
    // A line that does not parse shows as a missing row where the rows are counted.
    bytes(file).split(separator: 0x0a).compactMap { try? JSONValue.parse(Array($0)) }
  }
}
