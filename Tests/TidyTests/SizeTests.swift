import Testing

@Suite struct SizeTests {
  @Test func `a file is split by reason to change before it is too long to read`() throws {
    var tooLong: [String] = []
    for path in Repository.swiftFiles {
      let lines = try Repository.text(path).split(separator: "\n", omittingEmptySubsequences: false)
      if lines.count > (path.hasPrefix("Tests/") ? 700 : 500) + 1 {
        tooLong.append("\(path): \(lines.count)")
      }
    }
    #expect(tooLong == [])
  }
}
