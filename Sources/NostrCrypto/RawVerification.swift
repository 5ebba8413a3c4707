public import Nostr
public import Platform

/// The bare cost of checking signatures: parse the key, check the signature, nothing else.
///
/// No honest import can be faster, so benchmarks measure it in the same run and show their own rate
/// as a ratio to it.
public struct RawVerification: Sendable {
  private let items: [(message: Bytes32, signature: Signature, key: PublicKey)]

  public init(_ events: some Sequence<Event>) {
    items = events.map { ($0.id.bytes, $0.sig, $0.pubkey) }
  }

  public var count: Int { items.count }

  /// Checks every signature and returns how many hold.
  public func run(on work: any ParallelWork) async -> Int {
    let items = items
    let verdicts = await Batch.map(count: items.count, on: work) { index in
      let item = items[index]
      guard var key = Curve.shared.parse(item.key) else { return false }
      return Curve.shared.isValid(item.signature, over: item.message, by: &key)
    }
    return verdicts.count { $0 }
  }
}
