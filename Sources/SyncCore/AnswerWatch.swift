public import Nostr

/// Decides when a relay has left so many walks of a round without an answer that the others are
/// not asked.
///
/// An answer is an EOSE, a CLOSED or an event; a NOTICE is none, because it names no request. One
/// answer starts the count anew, so a relay that leaves out one filter is asked for all others. More
/// is borne of NOTICEs once the relay has answered anything: they cost little, and mean one request.
/// Walks that lose every connection before one of their answers is whole are counted too, because
/// each of them takes many connections; a part of an answer does not end that count.
public struct AnswerWatch: Sendable, Hashable {
  /// Whether the relay has answered anything in this round.
  public private(set) var hasAnswered = false
  private var silent = 0
  private var noticed = 0
  private var lost = 0
  private var reason: Text?
  private let limits: Limits

  public init(limits: Limits) { self.limits = limits }

  /// - Parameter isWhole: Whether the answer came to its end.
  public mutating func answered(isWhole: Bool) {
    hasAnswered = true
    silent = 0
    noticed = 0
    if isWhole { lost = 0 }
  }

  /// A walk was given up because no connection lasted until one of its answers was whole.
  public mutating func lost(_ why: Text) {
    lost += 1
    reason = why
  }

  /// A walk has ended without a single answer.
  ///
  /// - Parameter isSilent: Whether not even a NOTICE came, which takes the longest to see.
  public mutating func unanswered(_ why: Text, isSilent: Bool) {
    if isSilent || !hasAnswered {
      silent += !hasAnswered && isSilent ? limits.unansweredWalksMax : 1
    } else {
      noticed += 1
    }
    reason = why
  }

  /// Why no further walk of this round is worth asking for; nil while it is.
  public var givenUp: Text? {
    let isOver =
      silent >= limits.unansweredWalksMax || noticed >= limits.noticedWalksMax
      || lost >= limits.lostWalksMax
    return isOver ? reason : nil
  }

  /// How often a walk asks for the same page that does not come.
  public var retriesMax: Int {
    hasAnswered ? limits.walkRetriesMax : min(limits.walkRetriesMax, 2)
  }
}
