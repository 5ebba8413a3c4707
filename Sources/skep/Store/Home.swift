import Foundation
import Glibc
import Nostr

/// The folder that holds everything: one folder a community, and the keys.
struct Home: Sendable {
  let path: String

  /// - Parameters:
  ///   - option: `--home`, which wins over the environment.
  init(option: String?, environment: [String: String]) throws {
    func given(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    let chosen: String
    if let option {
      chosen = option
    } else if let home = given("SKEP_HOME") {
      chosen = home
    } else if let data = given("XDG_DATA_HOME"), data.hasPrefix("/") {
      chosen = data + "/skep"
    } else if let user = given("HOME") {
      chosen = user + "/.local/share/skep"
    } else {
      throw Failure(.usage, "no home: set HOME or SKEP_HOME, or give --home DIR")
    }
    guard !chosen.isEmpty else { throw Failure(.usage, "--home needs a folder") }
    path = chosen.hasPrefix("/") ? chosen : FileManager.default.currentDirectoryPath + "/" + chosen
  }

  var identityFolder: String { path + "/identity" }

  func folder(of community: CommunityName) -> String { path + "/" + community.text }

  /// Every community of this home, sorted by name.
  func communities() -> [CommunityName] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.compactMap(CommunityName.init(folder:)).filter {
      FileManager.default.fileExists(atPath: folder(of: $0) + "/log.sqlite")
    }.sorted()
  }

  /// Makes a folder below the home that only its owner may enter.
  func makeFolder(_ folder: String) throws {
    var made = ""
    for part in folder.split(separator: "/") {
      made += "/" + part
      guard mkdir(made, 0o700) != 0, errno != EEXIST else { continue }
      let code = errno
      // Above the home there may be folders that cannot be written and are there all the same.
      var status = stat()
      if stat(made, &status) == 0 { continue }
      throw SystemError.failure(code, doing: "\(made) cannot be made")
    }
  }
}

/// What names a community: the host and port of its home relay, or a word for one without a relay.
struct CommunityName: Hashable, Comparable, Sendable {
  let text: String

  /// The name of the one that imports go to where no other is known.
  static let archive = CommunityName(unchecked: "archive")

  private init(unchecked text: String) { self.text = text }

  init(_ relay: RelayURL) { text = relay.hostAndPort }

  /// - Parameter folder: A folder's name; nil for folders that are something else.
  init?(folder: String) {
    guard folder != "identity", !folder.isEmpty, !folder.hasPrefix("."), !folder.contains("/")
    else { return nil }
    text = folder
  }

  static func < (left: CommunityName, right: CommunityName) -> Bool { left.text < right.text }
}

/// What `--community` says.
enum CommunityChoice: Equatable {
  case url(RelayURL)
  case name(CommunityName)

  /// - Parameter word: A relay's URL, a host, a host with a port, or a community's name.
  init(_ word: String) throws(UsageError) {
    if let url = RelayURL(word) {
      self = .url(url)
      return
    }
    guard !word.contains("://"), !word.contains("@"),
      let name = CommunityName(folder: word.lowercased())
    else {
      throw UsageError(
        "--community “\(SafeText.line(word, cells: 60))” is no community: expected ws://HOST[:PORT],"
          + " wss://HOST[:PORT], or HOST[:PORT]")
    }
    self = .name(name)
  }

  var name: CommunityName {
    switch self {
    case .url(let url): CommunityName(url)
    case .name(let name): name
    }
  }
}
