import Platform

/// Results of many independent questions, placed by index and never by completion.
enum Batch {
  static func map<Element: Sendable>(
    count: Int, on work: any ParallelWork, _ answer: @escaping @Sendable (Int) -> Element
  ) async -> [Element] {
    guard count > 0 else { return [] }
    // Several pieces a worker, so that one slow piece does not leave the others idle; not so many
    // that handing them out costs anything beside a signature.
    let pieces = min(work.width * 8, (count + pieceMin - 1) / pieceMin)
    let answers = Lock([[Element]](repeating: [], count: pieces))
    await work.run(count: pieces) { piece in
      let part = (count * piece / pieces..<count * (piece + 1) / pieces).map(answer)
      answers.withLock { $0[piece] = part }
    }
    return answers.withLock { $0.flatMap { $0 } }
  }

  private static let pieceMin = 8
}
