/// Decides how much is asked of a relay whose connections end amid its answers.
///
/// An answer that was cut off is no progress, however much of it came: else a relay that loses every
/// connection after one event would be asked once for each. From the second in a row on, less is
/// asked for, so that one that loses only large answers is read in small ones.
struct Interruptions: Sendable, Hashable {
  /// Answers that were cut off since the last one that came to its end.
  private(set) var inRow = 0
  /// How much is asked for at most.
  private(set) var answerMax = Int.max
  /// Answers that came to their end since one was cut off, or since more was asked for.
  private var wholeInRow = 0
  /// After so many of those more is asked for again: what cut the others off may have passed.
  private var wholeBeforeMore = 8
  private let answerLeast: Int

  /// The longest time that is spent on small answers before larger ones are tried, in answers.
  private static let wholeBeforeMoreMax = 1 << 12

  /// - Parameter answerLeast: How much is always asked for.
  init(answerLeast: Int) { self.answerLeast = answerLeast }

  mutating func answered() {
    inRow = 0
    guard answerMax < .max else { return }
    wholeInRow += 1
    guard wholeInRow >= wholeBeforeMore else { return }
    wholeInRow = 0
    answerMax = answerMax > 1 << 20 ? .max : answerMax * 2
  }

  /// - Parameters:
  ///   - delivered: How much had come by then.
  ///   - asked: How much was asked for.
  mutating func cutOff(after delivered: Int, of asked: Int) {
    inRow += 1
    wholeInRow = 0
    // A connection may end at any time. Twice in the same place, the answer may be too large.
    guard inRow > 1 else { return }
    let less = delivered > 0 ? min(delivered, asked) / 2 : asked / 8
    answerMax = max(answerLeast, min(answerMax, less))
    if inRow == 2 { wholeBeforeMore = min(wholeBeforeMore * 2, Self.wholeBeforeMoreMax) }
  }

  mutating func askForAll() { answerMax = .max }
}
