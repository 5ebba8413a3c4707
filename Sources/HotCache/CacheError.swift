public import EventLog

/// Why the cache could not answer. Losing the cache is not among the reasons: then memory answers.
public enum CacheError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The log could not be read.
  case log(LogError)
  /// A row failed its check while being read. The cache rebuilds itself at its next `catchUp`; ask
  /// again after it.
  case damaged(String)
  /// The files could not be read.
  case unavailable(String)

  public var description: String {
    switch self {
    case .log(let error): error.description
    case .damaged(let why): "the cache is damaged and is being rebuilt: \(why)"
    case .unavailable(let why): "the cache cannot be read: \(why)"
    }
  }

  init(_ error: StoreError) {
    switch error {
    case .damaged(let why): self = .damaged(why)
    case .full(let why), .unavailable(let why): self = .unavailable(why)
    }
  }
}
