import Platform
import SyncCore

/// SplitMix64: the same seed gives the same numbers in every process.
final class SeededRandom: RandomSource {
  private let state: Lock<UInt64>

  init(_ seed: UInt64) { state = Lock(seed) }

  func next() -> UInt64 {
    state.withLock { state in
      state &+= 0x9e37_79b9_7f4a_7c15
      var mixed = state
      mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
      return mixed ^ (mixed >> 31)
    }
  }

  func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

  func chance(_ fraction: Double) -> Bool { self.fraction() < fraction }
}

enum Seeds {
  static let kept: [UInt64] = Array(1...150)
}
