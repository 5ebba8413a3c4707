import Glibc
import SyncEngine

/// Where a command may write what the command line asks for: nowhere that something would be lost.
enum OutputPath {
  /// What an option names, refused where it names nothing, or a file among those that are Skep's own.
  static func given(_ option: String, _ context: Context) throws -> String? {
    guard let path = context.invocation.value(option) else { return nil }
    guard !path.isEmpty else { throw context.usage("--\(option) needs the name of a file") }
    guard path != stdout, let owner = owner(of: path, home: try context.home()) else { return path }
    throw context.usage(
      "--\(option) \(SafeText.line(path)) lies in \(SafeText.line(owner)), among the files of Skep's"
        + " own: choose another place")
  }

  /// What stands for stdout, as it stands for stdin where a command reads.
  static let stdout = "-"

  /// The folder of a community, of any home, or of this home's keys that a path would be written in.
  private static func owner(of path: String, home: Home) -> String? {
    let keys = real(home.identityFolder)
    var folder = real(AtomicFile.folder(of: AtomicFile.target(of: path)))
    while let place = folder {
      let isCommunity = access(place + "/" + CommunityStore.logName, F_OK) == 0
      if isCommunity || place == keys { return place }
      folder = place == "/" ? nil : AtomicFile.folder(of: place)
    }
    return nil
  }

  /// A path without links and dots; nil where there is nothing.
  private static func real(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }
}
