import Testing

/// A spelling that is banned in some folders, and what stands in its place.
private struct Ban: Sendable, CustomTestStringConvertible {
  let pattern: String
  let folders: [String]
  let instead: String

  var testDescription: String { pattern }

  func isBroken(by line: Substring) -> Bool {
    guard let regex = try? Regex(pattern) else { return true }
    return code(of: line).contains(regex)
  }
}

/// Everything that the simulator must be able to run on its own thread and clock.
private let belowTheShells = [
  "Sources/Nostr", "Sources/NostrCrypto", "Sources/SyncCore", "Sources/EventLog",
  "Sources/HotCache", "Sources/SearchStore", "Sources/SyncEngine", "Sources/RelayServer",
]

private let everywhere = ["Sources", "Simulations", "Migrations", "Tests"]

private let bans: [Ban] = [
  Ban(
    pattern: #"(^|[^A-Za-z_.])Task\s*(\(|\{)"#, folders: belowTheShells,
    instead: "a task group or ports.tasks.spawn"),
  Ban(
    pattern: #"Task\.detached"#, folders: belowTheShells, instead: "ports.tasks.spawn"),
  Ban(
    pattern: #"Task\.sleep"#, folders: belowTheShells + ["Tests", "Simulations"],
    instead: "ports.clock.sleep, or a step of the world"),
  Ban(
    pattern: #"(^|[^A-Za-z])u?sleep\((?!until)"#,
    folders: ["Tests", "Simulations"] + belowTheShells,
    instead: "waiting for an event"),
  Ban(pattern: #"[^A-Za-z]Date\(\)"#, folders: belowTheShells, instead: "ports.clock.now()"),
  Ban(
    pattern: #"(ContinuousClock|SuspendingClock)\("#, folders: belowTheShells,
    instead: "ports.clock.uptime()"),
  Ban(
    pattern: #"SystemRandomNumberGenerator|\.random\(|\.randomElement\(|\.shuffled\(\)"#,
    folders: belowTheShells, instead: "ports.random"),
  Ban(pattern: #"clock_gettime|gettimeofday"#, folders: belowTheShells, instead: "ports.clock"),
  Ban(
    pattern: #"(^|[^A-Za-z])(try!|fatalError\()"#, folders: ["Sources", "Simulations"],
    instead: "a typed error, or a precondition with its rule"),
  Ban(
    pattern: #"(class|struct|enum|actor|protocol) \w*(Manager|Helper|Utils|Util)\b"#,
    folders: everywhere, instead: "a noun that says the job"),
  Ban(
    pattern: #"JSONEncoder|JSONSerialization|JSONDecoder"#, folders: belowTheShells,
    instead: "the scanner and the writers of Nostr"),
]

@Suite struct BannedWordTests {
  @Test(arguments: bans)
  fileprivate func `no layer uses what would escape it`(ban: Ban) throws {
    var found: [String] = []
    for folder in ban.folders {
      for path in Repository.files(under: folder, ending: ".swift")
      where !path.hasPrefix("Tests/TidyTests/") {
        let lines = try Repository.text(path).split(
          separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where ban.isBroken(by: line) {
          found.append("\(path):\(index + 1)")
        }
      }
    }
    #expect(found == [], "use \(ban.instead)")
  }

  @Test(arguments: [
    ("Task { await run() }", true), ("  let task = Task {", true),
    ("withTaskGroup(of: Void.self) {", false), ("any SpawnedTask {", false),
    ("// Task { } would escape", false),
  ])
  func `a bare task is told from its neighbours`(line: String, isBroken: Bool) {
    #expect(bans[0].isBroken(by: line[...]) == isBroken)
  }

  @Test func `no file is left with a mark of unfinished work`() throws {
    let marks = try Regex(#"\b(TO"# + #"DO|FIX"# + #"ME|XX"# + #"X|HA"# + #"CK)\b"#)
    let found = try Repository.swiftFiles.filter { try Repository.text($0).contains(marks) }
    #expect(found == [])
  }
}
