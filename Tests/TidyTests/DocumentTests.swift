import Foundation
import Testing

@Suite struct DocumentTests {
  private var documents: [String] {
    Repository.files(under: "docs", ending: ".md")
      + ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
  }

  @Test func `every path that a document names exists`() throws {
    let named = /`((?:Sources|Tests|docs|Migrations|Simulations|\.ci)\/[A-Za-z0-9_.\/+-]*)`/
    var missing: [String] = []
    for document in documents {
      for match in try Repository.text(document).matches(of: named)
      where !Repository.exists(String(match.1)) {
        missing.append("\(document) names \(match.1)")
      }
    }
    #expect(missing == [])
  }

  @Test func `every relative link of a document leads somewhere`() throws {
    let link = /\]\(([^)#:\s]+)(?:#[^)]*)?\)/
    var missing: [String] = []
    for document in documents {
      let folder = URL(filePath: document).deletingLastPathComponent().relativePath
      for match in try Repository.text(document).matches(of: link) {
        let path = folder == "." ? String(match.1) : "\(folder)/\(match.1)"
        if !Repository.exists(path) { missing.append("\(document) links to \(match.1)") }
      }
    }
    #expect(missing == [])
  }

  @Test func `every make target that a document names exists`() throws {
    let targets = Set(
      try Repository.text("Makefile").matches(of: /(?m)^([a-z]+):/).map { String($0.1) })
    var missing: [String] = []
    for document in documents {
      for match in try Repository.text(document).matches(of: /`make ([a-z]+)/)
      where !targets.contains(String(match.1)) {
        missing.append("\(document) names make \(match.1)")
      }
    }
    #expect(targets.contains("demo"))
    #expect(missing == [])
  }

  @Test func `every test that a document names stands in the file it names`() throws {
    var missing: [String] = []
    var count = 0
    for document in documents {
      for match in try Repository.text(document)
        .matches(of: /\| ([A-Za-z]+\/[A-Za-z]+\.swift): `([^`]+)` \|/)
      {
        count += 1
        let path = "Tests/\(match.1)"
        guard Repository.exists(path),
          try Repository.text(path).contains("func `\(match.2)`(")
        else {
          missing.append("\(document) names \(match.1): \(match.2)")
          continue
        }
      }
    }
    #expect(count > 40)
    #expect(missing == [])
  }

  @Test func `every report of the families that the table keeps has a test`() throws {
    let named = Set(
      try Repository.text("docs/PROTOCOL.md").matches(of: /(?m)^\| F([0-9]+) \|/)
        .compactMap { Int($0.1) })
    let families = [20...38, 40...55, 60...66, 70...85, 90...98, 170...179]
    #expect(families.joined().filter { !named.contains($0) } == [])
  }

  @Test func `every decision is numbered once and in a row`() {
    let numbers = Repository.files(under: "docs/decisions", ending: ".md")
      .compactMap { Int($0.split(separator: "/").last?.prefix(3) ?? "") }
    #expect(!numbers.isEmpty)
    #expect(numbers == Array(1...max(1, numbers.count)))
  }

  @Test func `no file names a path of somebody's machine`() throws {
    let home = try Regex(#"(/home/|/root/|/Users/)[a-z]"#)
    let found = try (documents + Repository.swiftFiles)
      .filter { !$0.hasPrefix("Tests/TidyTests/") }
      .filter { try Repository.text($0).contains(home) }
    #expect(found == [])
  }
}
