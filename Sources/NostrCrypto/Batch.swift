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
    let slots = Slots<Element>(count: count)
    await work.run(count: pieces) { piece in
      for index in count * piece / pieces..<count * (piece + 1) / pieces {
        slots.set(index, to: answer(index))
      }
    }
    return slots.take()
  }

  private static let pieceMin = 8
}

/// Memory for one result an index.
private struct Slots<Element: Sendable>: @unchecked Sendable {
  // Unchecked: every index belongs to one piece, a piece to one worker, and `take` comes after all.
  private let elements: UnsafeMutableBufferPointer<Element>

  init(count: Int) { elements = .allocate(capacity: count) }

  func set(_ index: Int, to element: Element) { elements.initializeElement(at: index, to: element) }

  /// Moves the results out and frees the memory; every index must have been set.
  func take() -> [Element] {
    defer { elements.deallocate() }
    return Array(unsafeUninitializedCapacity: elements.count) { buffer, count in
      count = buffer.moveInitialize(fromContentsOf: elements)
    }
  }
}
