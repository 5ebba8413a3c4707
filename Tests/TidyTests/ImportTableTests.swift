import Testing

/// Which target may know which. The compiler does not keep this: an undeclared import of a sibling
/// can build silently.
private let table: [String: Set<String>] = [
  "Sources/Platform": ["Glibc"],
  "Sources/Nostr": [],
  "Sources/NostrCrypto": ["Nostr", "Platform", "CSecp256k1", "CCrypto", "Glibc"],
  "Sources/SyncCore": ["Nostr", "NostrCrypto", "Platform"],
  "Sources/EventLog": [
    "Nostr", "NostrCrypto", "SyncCore", "Platform", "Migrations", "CSQLite", "Glibc",
  ],
  "Sources/HotCache": ["Nostr", "SyncCore", "EventLog", "Platform", "CLMDB", "Glibc"],
  "Sources/SearchStore": [
    "Nostr", "SyncCore", "EventLog", "HotCache", "Platform", "CSQLite", "Glibc",
  ],
  "Sources/SyncEngine": [
    "Nostr", "NostrCrypto", "SyncCore", "EventLog", "HotCache", "SearchStore", "Platform", "Glibc",
  ],
  "Sources/RelayServer": [
    "Nostr", "NostrCrypto", "SyncCore", "EventLog", "HotCache", "Platform", "Glibc",
  ],
  "Sources/RelaySocket": [
    "Nostr", "SyncCore", "Platform", "CWebSockets", "Foundation", "FoundationNetworking", "Glibc",
  ],
  "Sources/Skep": ["SyncEngine", "SyncCore", "RelaySocket", "NostrCrypto", "Nostr"],
  "Sources/skep": [
    "SyncEngine", "RelayServer", "RelaySocket", "SearchStore", "HotCache", "EventLog",
    "NostrCrypto",
    "Nostr", "SyncCore", "Platform", "CEdit", "Foundation", "Glibc",
  ],
  "Migrations": [],
  "Simulations/Kit": [
    "Nostr", "NostrCrypto", "SyncCore", "EventLog", "HotCache", "SyncEngine", "RelayServer",
    "Platform", "CSQLite", "Glibc", "_Concurrency",
  ],
  "Simulations/Scenarios": [
    "SimulationKit", "Nostr", "NostrCrypto", "SyncCore", "EventLog", "HotCache", "SyncEngine",
    "RelayServer", "Platform",
  ],
  "Simulations/Runner": [
    "SimulationKit", "SimulationScenarios", "Platform", "Foundation", "Glibc",
  ],
]

@Suite struct ImportTableTests {
  @Test func `every target imports only what the table allows`() throws {
    var broken: [String] = []
    for path in Repository.swiftFiles where !path.hasPrefix("Tests/") {
      let owner = try #require(folder(of: path), "\(path) belongs to no target of the table")
      for module in try imports(of: path) where !table[owner, default: []].contains(module) {
        broken.append("\(path) imports \(module)")
      }
    }
    #expect(broken == [], "change the table and docs/ARCHITECTURE.md together, or the import")
  }

  @Test func `the rule sees every spelling of an import`() {
    #expect(importedModule("import Foundation") == "Foundation")
    #expect(importedModule("public import Nostr") == "Nostr")
    #expect(importedModule("@preconcurrency internal import struct Glibc.timespec") == "Glibc")
    #expect(importedModule("@_spi(Testing) @testable import EventLog") == "EventLog")
    #expect(importedModule("let important = 1") == nil)
    #expect(importedModule("// import Foundation") == nil)
  }

  private func folder(of path: String) -> String? {
    table.keys.filter { path.hasPrefix($0 + "/") }.max { $0.count < $1.count }
  }

  private func imports(of path: String) throws -> [String] {
    try Repository.text(path).split(separator: "\n").compactMap(importedModule)
  }
}

private func importedModule(_ line: Substring) -> String? { importedModule(String(line)) }

private func importedModule(_ line: String) -> String? {
  let words = code(of: line[...]).split(separator: " ")
  guard let place = words.firstIndex(of: "import"),
    words[..<place].allSatisfy({ $0.hasPrefix("@") || accessLevels.contains(String($0)) })
  else { return nil }
  var rest = words[words.index(after: place)...]
  if let first = rest.first, declarationKinds.contains(String(first)) { rest = rest.dropFirst() }
  return rest.first.map { String($0.prefix { $0 != "." }) }
}

private let accessLevels: Set<String> = ["public", "package", "internal", "private", "fileprivate"]
private let declarationKinds: Set<String> = [
  "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
]
