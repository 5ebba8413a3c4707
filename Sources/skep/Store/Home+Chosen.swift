import Foundation
import Glibc
import SyncEngine

extension Home {
  /// The home that the command line or the environment names.
  ///
  /// - Parameter option: `--home`, which wins over the environment.
  static func chosen(option: String?, environment: [String: String]) throws -> Home {
    func given(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    let path: String
    if let option {
      path = option
    } else if let home = given("SKEP_HOME") {
      path = home
    } else if let data = given("XDG_DATA_HOME"), data.hasPrefix("/") {
      path = data + "/skep"
    } else if let user = given("HOME") {
      path = user + "/.local/share/skep"
    } else {
      throw Failure(.usage, "no home: set HOME or SKEP_HOME, or give --home DIR")
    }
    guard !path.isEmpty else { throw Failure(.usage, "--home needs a folder") }
    return Home(
      path: path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path)
  }

  /// Refuses a home that this user may not look into: it would seem to be empty.
  func refuseUnreadable() throws {
    var status = stat()
    // Below a file nothing can be either.
    let isBelowFile = stat(path, &status) != 0 && errno == ENOTDIR
    if isBelowFile || status.st_mode & S_IFMT != 0 && status.st_mode & S_IFMT != S_IFDIR {
      throw Failure(
        .io, "\(SafeText.line(path)) is not a folder; choose another home with --home")
    }
    guard access(path, R_OK | X_OK) != 0, errno == EACCES else { return }
    throw Failure(
      .io,
      "\(SafeText.line(path)) may not be read: permission denied; choose another home, or run this"
        + " as the user whose it is")
  }
}
