import Glibc
public import Nostr

/// The folder that holds everything: one folder a community, and the keys.
public struct Home: Hashable, Sendable {
  public let path: String

  public init(path: String) { self.path = path }

  public var identityFolder: String { path + "/identity" }

  public func folder(of community: CommunityName) -> String { path + "/" + community.text }

  /// Every community that is here, sorted by name.
  public func communities() -> [CommunityName] {
    Self.names(in: path).compactMap { CommunityName(folder: $0) }.filter(has).sorted()
  }

  /// What is in a folder, in no order; nothing where it cannot be read.
  private static func names(in folder: String) -> [String] {
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      // The name is an array of a fixed size, which Swift sees as a tuple.
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  public func has(_ community: CommunityName) -> Bool {
    // The lock comes first: a folder without a log was begun by somebody who was killed, or has
    // lost it, and opening it says which.
    // Where it may not be looked for, it may be: opening it says what is the matter.
    [CommunityStore.logName, FolderLock.name].contains { name in
      access(folder(of: community) + "/" + name, F_OK) == 0 || errno == EACCES
    }
  }

  /// The community that a word of the command line means: a relay's URL, a host, a host with a
  /// port, or a name. Without a word: the only one there is.
  public func community(named word: String?) throws(HomeError) -> CommunityName {
    let known = communities()
    guard let word else {
      if known.count == 1 { return known[0] }
      throw known.isEmpty ? HomeError.none(home: path) : HomeError.several(known)
    }
    if let relay = RelayURL(word) {
      let name = community(of: relay)
      guard known.contains(name) else { throw HomeError.unknown(name, known: known) }
      return name
    }
    guard let name = CommunityName(spelled: word) else { throw HomeError.malformed(word) }
    if known.contains(name) { return name }
    // A host alone is enough where only one community is there.
    let near = known.filter { other in
      [":", "+", "="].contains { other.text.hasPrefix(name.text + $0) }
    }
    if near.count == 1 { return near[0] }
    throw HomeError.unknown(name, known: known)
  }

  /// Makes a community's folder, which only its owner may enter; the home too where it is missing.
  public func makeFolder(of community: CommunityName) throws(StoreError) {
    try Self.makeFolder(folder(of: community))
  }

  /// Removes a folder and what is in it, as far as that can be done.
  static func remove(_ folder: String) {
    for name in names(in: folder) {
      let path = folder + "/" + name
      if unlink(path) != 0, errno == EISDIR { remove(path) }
    }
    rmdir(folder)
  }

  static func makeFolder(_ folder: String) throws(StoreError) {
    var made = folder.hasPrefix("/") ? "" : "."
    for part in folder.split(separator: "/") {
      made += "/" + part
      guard mkdir(made, 0o700) != 0, errno != EEXIST else { continue }
      let problem = errno
      // Above the home there may be folders that cannot be written and are there all the same.
      if access(made, F_OK) != 0 { throw StoreError(errno: problem, path: made) }
    }
  }
}

/// What names a community: the host and port of its home relay and its path, or a word for one without a relay.
public struct CommunityName: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let text: String

  /// The one that imports go to where no other is known; it has no relay.
  public static let archive = CommunityName(unchecked: "archive")

  private init(unchecked text: String) { self.text = text }

  /// - Parameter withScheme: For a relay at the same host, port and path as another.
  init(_ relay: RelayURL, withScheme: Bool) {
    let name = relay.hostAndPort
    // A machine may be called as the home calls something of its own: its port tells them apart.
    let isTaken = Self.reserved.contains(name) || name == Self.archive.text
    let machine = isTaken ? "\(name):\(relay.port)" : name
    let path = relay.path == "/" ? "" : Self.spelled(relay.path)
    let scheme = withScheme ? relay.isSecure ? "=wss" : "=ws" : ""
    text = path.isEmpty && scheme.isEmpty ? machine : Self.cut(machine + path + scheme)
  }

  /// What a relay's community is called where no other relay has that name: see
  /// `Home.community(of:)`.
  public init(_ relay: RelayURL) { self.init(relay, withScheme: false) }

  /// The folder of the keys, and what the key of no community is called there.
  private static let reserved: Set<String> = ["identity", "default"]

  /// - Parameter folder: A folder's name; nil for folders that are something else.
  public init?(folder: String) {
    guard !folder.isEmpty, !Self.reserved.contains(folder), !folder.hasPrefix("."),
      folder.utf8.count < 256,
      folder.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x2f && $0 != 0x7f })
    else { return nil }
    text = folder
  }

  /// - Parameter word: A host, a host with a port, or a name, in any case.
  init?(spelled word: String) {
    guard !word.contains("@"), !word.contains("://") else { return nil }
    self.init(folder: word.lowercased())
  }

  public var description: String { text }

  public static func < (left: CommunityName, right: CommunityName) -> Bool {
    left.text < right.text
  }
}

/// Why no community could be chosen.
public enum HomeError: Error, Hashable, Sendable, CustomStringConvertible {
  case none(home: String)
  case several([CommunityName])
  case unknown(CommunityName, known: [CommunityName])
  case malformed(String)

  public var description: String {
    switch self {
    case .none(let home): "there is no community in \(home) yet"
    case .several(let known):
      "which community? " + known.map(\.text).joined(separator: ", ")
    case .unknown(let name, let known):
      "there is no community \(name) here; "
        + (known.isEmpty
          ? "there is none yet" : "known: " + known.map(\.text).joined(separator: ", "))
    case .malformed: "a community is named by ws://HOST[:PORT], wss://HOST[:PORT] or HOST[:PORT]"
    }
  }
}
