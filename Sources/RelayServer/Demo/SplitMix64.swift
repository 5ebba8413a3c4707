import Platform
import SyncCore

/// A small generator of numbers that depend on the seed alone, on every machine.
package struct SplitMix64: Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number in `range`, with no bias that a test could see.
  package mutating func number(in range: Range<Int>) -> Int {
    precondition(!range.isEmpty, "a number is drawn from something")
    let product = next().multipliedFullWidth(by: UInt64(range.count))
    return range.lowerBound + Int(product.high)
  }

  /// A number in `0..<1`.
  package mutating func fraction() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// True `percent` times out of a hundred.
  package mutating func chance(_ percent: Int) -> Bool { number(in: 0..<100) < percent }

  package mutating func element<Element>(of list: [Element]) -> Element {
    list[number(in: 0..<list.count)]
  }
}

/// A seeded source of random numbers for ports.
package final class SeededRandom: RandomSource {
  private let generator: Lock<SplitMix64>

  package init(seed: UInt64) { generator = Lock(SplitMix64(seed: seed)) }

  package func next() -> UInt64 { generator.withLock { $0.next() } }
}
