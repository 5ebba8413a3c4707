import Platform
import SyncCore

/// Random numbers of the kernel, read in blocks.
package final class SystemRandom: RandomSource {
  private struct Block {
    var numbers: [UInt64] = []
  }
  private let block = Lock(Block())
  private static let blockCount = 64

  package init() {}

  package func next() -> UInt64 {
    block.withLock { block in
      if block.numbers.isEmpty {
        // On Linux the system's generator is `getrandom`.
        var source = SystemRandomNumberGenerator()
        block.numbers = (0..<Self.blockCount).map { _ in source.next() }
      }
      return block.numbers.removeLast()
    }
  }
}
