import Platform

/// A short queue between two stages of a pipeline: one sends, one receives, and the sender waits
/// while what is queued weighs too much.
final class Handoff<Element: Sendable>: Sendable {
  private let weightMax: Int
  private let state: Lock<State>

  private struct State {
    var items: [(element: Element, weight: Int)] = []
    var weight = 0
    var isFinished = false
    var isAbandoned = false
    var sender: CheckedContinuation<Void, Never>?
    var receiver: CheckedContinuation<Void, Never>?
  }

  /// - Parameter weightMax: The most that is queued, unless one element alone weighs more.
  init(weightMax: Int) {
    self.weightMax = weightMax
    state = Lock(State())
  }

  /// Whether the receiver has nothing left to take.
  var isEmpty: Bool { state.withLock { $0.items.isEmpty } }

  /// Returns once the element is queued; false: nobody will receive it.
  func send(_ element: Element, weight: Int) async -> Bool {
    while true {
      let (outcome, waiting) = state.withLock {
        state -> (Bool?, CheckedContinuation<Void, Never>?) in
        if state.isAbandoned { return (false, nil) }
        guard state.items.isEmpty || state.weight + weight <= weightMax else { return (nil, nil) }
        state.items.append((element, weight))
        state.weight += weight
        return (true, take(&state.receiver))
      }
      waiting?.resume()
      if let outcome { return outcome }
      await withCheckedContinuation { continuation in
        let resumesNow = state.withLock { state -> Bool in
          precondition(state.sender == nil, "a handoff has one sender")
          if state.isAbandoned || state.items.isEmpty { return true }
          state.sender = continuation
          return false
        }
        if resumesNow { continuation.resume() }
      }
    }
  }

  /// The next element, in the order sent; nil: there will be none.
  func receive() async -> Element? {
    while true {
      let (element, isOver, waiting) = state.withLock {
        state -> (Element?, Bool, CheckedContinuation<Void, Never>?) in
        if state.isAbandoned { return (nil, true, nil) }
        guard !state.items.isEmpty else { return (nil, state.isFinished, nil) }
        let item = state.items.removeFirst()
        state.weight -= item.weight
        return (item.element, false, take(&state.sender))
      }
      waiting?.resume()
      if element != nil || isOver { return element }
      await withCheckedContinuation { continuation in
        let resumesNow = state.withLock { state -> Bool in
          precondition(state.receiver == nil, "a handoff has one receiver")
          if state.isAbandoned || state.isFinished || !state.items.isEmpty { return true }
          state.receiver = continuation
          return false
        }
        if resumesNow { continuation.resume() }
      }
    }
  }

  /// Nothing more is sent; what is queued can still be received.
  func finish() { end { $0.isFinished = true } }

  /// Drops what is queued and lets both sides go.
  func abandon() {
    end { state in
      state.isAbandoned = true
      state.items = []
      state.weight = 0
    }
  }

  private func end(_ change: (inout State) -> Void) {
    let waiting = state.withLock { state in
      change(&state)
      return [take(&state.sender), take(&state.receiver)]
    }
    for continuation in waiting { continuation?.resume() }
  }

  private func take(
    _ continuation: inout CheckedContinuation<Void, Never>?
  ) -> CheckedContinuation<Void, Never>? {
    defer { continuation = nil }
    return continuation
  }
}
