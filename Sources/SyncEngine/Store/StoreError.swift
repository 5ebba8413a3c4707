public import EventLog

/// Why a community's folder could not be used.
public enum StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another process holds the folder; its number, where it could be read.
  case inUse(folder: String, pid: Int32?)
  case readOnly(String)
  case full(String)
  case io(String)
  case log(LogError)

  public var description: String {
    switch self {
    case .inUse(let folder, let pid):
      "\(folder) is in use by \(pid.map { "process \($0)" } ?? "another process"): "
        + "end it, or choose another home"
    case .readOnly(let path):
      "\(path) cannot be written: make it writable, or choose another home"
    case .full(let path): "the disk is full (\(path)): free some space and try again"
    case .io(let what): what
    case .log(let error): error.description
    }
  }
}
