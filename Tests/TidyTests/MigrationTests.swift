import Foundation
import Testing

@Suite struct MigrationTests {
  @Test func `migrations are numbered without a gap`() {
    let files = Repository.files(under: "Migrations", ending: ".sql")
    let numbers = files.compactMap {
      Int($0.split(separator: "/").last?.dropFirst().prefix(3) ?? "")
    }
    #expect(!files.isEmpty)
    #expect(numbers == Array(1...max(1, files.count)))
  }

  @Test func `every migration is embedded in the package`() throws {
    let manifest = try Repository.text("Package.swift")
    let missing = Repository.files(under: "Migrations", ending: ".sql")
      .map { String($0.split(separator: "/").last ?? "") }
      .filter { !manifest.contains("\"\($0)\"") }
    #expect(missing == [])
  }
}
