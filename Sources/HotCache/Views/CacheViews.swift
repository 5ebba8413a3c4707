public import Nostr
import Platform
public import SyncCore

/// Read access to the cache, from any thread that may block.
public final class CacheViews: Sendable {
  struct Current: Sendable {
    var store: any CacheStore
    var state: CacheState
    /// Set by a reader that met a bad row; the writer rebuilds at its next turn.
    var isDoubted = false
    var notice: String?
    var blocked: Set<PublicKey> = []
  }

  private let current: Lock<Current>
  private let reads = Lock(ReadWatch())

  init(store: any CacheStore, state: CacheState) {
    current = Lock(Current(store: store, state: state))
  }

  /// Calls `body` with one state of the cache, which no writer changes meanwhile.
  ///
  /// It is synchronous, so that no snapshot is held across an `await`; never call it from within
  /// `body`. Everything in the rows handed out is a copy.
  public func read<Result>(
    _ body: (borrowing CacheSnapshot) throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    let (store, state, blocked) = current.withLock { ($0.store, $0.state, $0.blocked) }
    let read = reads.withLock { $0.began() }
    defer { reads.withLock { $0.ended(read) } }
    do throws(StoreReadError<CacheError>) {
      return try store.read { snapshot throws(CacheError) in
        let view: CacheSnapshot
        do throws(StoreError) {
          view = try CacheSnapshot(store: snapshot, state: state, blocked: blocked)
        } catch {
          throw CacheError(error)
        }
        return try body(view)
      }
    } catch {
      let reason =
        switch error {
        case .store(let failure): CacheError(failure)
        case .body(let failure): failure
        }
      if case .damaged = reason { doubt(store) }
      throw reason
    }
  }

  /// Watches from now on for reads that take long.
  public func watch(with clock: any SyncClock) { reads.withLock { $0.clock = clock } }

  /// How long the slowest read has taken, or takes already, if that is five seconds or more.
  public var slowestRead: Duration? { reads.withLock { $0.slowest } }

  /// The people whose words no view shows from now on. It is a local decision: `query`, `items` and
  /// the digest, which speak for the log, do not know of it.
  public func setBlocked(_ people: Set<PublicKey>) { current.withLock { $0.blocked = people } }

  public var blocked: Set<PublicKey> { current.withLock { $0.blocked } }

  /// How the cache stands.
  public var state: CacheState { current.withLock { $0.state } }

  var isDoubted: Bool { current.withLock { $0.isDoubted } }

  /// Why rows were thrown away or memory took over since opening; nil: they never were.
  public var notice: String? { current.withLock { $0.notice } }

  func note(_ why: String) { current.withLock { $0.notice = why } }

  func replace(store: any CacheStore, state: CacheState) {
    current.withLock { value in
      value = Current(
        store: store, state: state, notice: value.notice, blocked: value.blocked)
    }
  }

  func set(_ state: CacheState) { current.withLock { $0.state = state } }

  private func doubt(_ store: any CacheStore) {
    current.withLock { value in
      // Another store may have taken its place meanwhile, and is not to blame.
      if value.store === store { value.isDoubted = true }
    }
  }
}
