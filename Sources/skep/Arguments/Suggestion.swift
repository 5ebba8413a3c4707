/// Finds the name that somebody probably meant.
enum Suggestion {
  /// The nearest of `names`, or nil where none is near enough to be a slip of the finger.
  static func nearest(to word: String, among names: [String]) -> String? {
    let word = Array(word.lowercased().utf8.prefix(40))
    let scored = names.map { name in (distance(word, Array(name.utf8)), name) }
    guard let best = scored.min(by: { ($0.0, $0.1) < ($1.0, $1.1) }) else { return nil }
    let letters = best.1.utf8.count { $0 != UInt8(ascii: "-") }
    return best.0 <= max(1, letters / 3) || isStart(word, of: best.1) ? best.1 : nil
  }

  private static func isStart(_ word: [UInt8], of name: String) -> Bool {
    word.count >= 3 && name.utf8.starts(with: word)
  }

  /// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
  static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 0..<left.count {
      var next = [row + 1]
      for column in 0..<right.count {
        let change = last[column] + (left[row] == right[column] ? 0 : 1)
        var best = min(change, last[column + 1] + 1, next[column] + 1)
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          best = min(best, beforeLast[column - 1] + 1)
        }
        next.append(best)
      }
      beforeLast = last
      last = next
    }
    return last[right.count]
  }
}
