import Foundation

/// The source tree that the tidy tests read as text.
enum Repository {
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Every file below `folder` whose name ends so, as paths from the root, sorted.
  static func files(under folder: String, ending suffix: String) -> [String] {
    let start = root.appending(path: folder)
    guard let walk = FileManager.default.enumerator(atPath: start.path) else { return [] }
    return walk.compactMap { $0 as? String }
      .filter { $0.hasSuffix(suffix) && !$0.hasPrefix(".build") }
      .map { folder.isEmpty ? $0 : "\(folder)/\($0)" }
      .sorted()
  }

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: root.appending(path: path).path)
  }

  static let swiftFolders = ["Sources", "Migrations", "Simulations", "Tests"]

  static var swiftFiles: [String] {
    swiftFolders.flatMap { files(under: $0, ending: ".swift") }
  }
}

/// The code of one line: what stands before a `//`, with string literals emptied, so that a word in
/// a comment or a message is not taken for a call.
func code(of line: Substring) -> String {
  var result = ""
  var isInString = false
  var previous: Character = " "
  for character in line {
    if character == "\"" && previous != "\\" {
      isInString.toggle()
      result.append(character)
    } else if !isInString {
      if character == "/" && previous == "/" { return String(result.dropLast()) }
      result.append(character)
    }
    previous = character
  }
  return result
}
