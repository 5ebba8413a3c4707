import Nostr
import RelayServer

/// Something that a relay does for a while and an honest one would not.
package enum Trouble: Int, CaseIterable, Sendable {
  case okLate, okNever, okWithoutID, okRefused
  case eoseLate, eoseNever, eoseTwice, eoseEarly
  case rateLimited, rateLimitedByNotice
  case foreignEvents, unaskedEvents, swappedContent
  case shortPages, challengesAgain, deaf, silentToBadRequests
  case duplicatesRefused
  case tampered, backdated

  /// The ones that a recipe's number stands for, one bit each.
  static func list(_ bits: Int) -> [Trouble] {
    allCases.filter { bits & (1 << $0.rawValue) != 0 }
  }

  /// All after which a relay's word that a page is complete still counts.
  package static let honestBits = bits(allCases.filter { $0 != .eoseEarly })

  package static func bits(_ troubles: [Trouble]) -> Int {
    troubles.reduce(0) { $0 | 1 << $1.rawValue }
  }

  func apply(to rules: inout RelayRules, _ random: inout SplitMix64) {
    switch self {
    case .okLate: rules.answers.toEvent = .late(.seconds(random.number(in: 1..<60)))
    case .okNever: rules.answers.toEvent = .never
    case .okWithoutID: rules.answers.toEvent = .emptyID
    case .okRefused:
      let words: [Text] = [
        "rate-limited: slow down", "error: database is locked", "error: try again later",
      ]
      rules.answers.toEvent = .refused(random.element(of: words))
    case .eoseLate: rules.answers.endOfStored = .late(.seconds(random.number(in: 1..<30)))
    case .eoseNever: rules.answers.endOfStored = .never
    case .eoseTwice: rules.answers.endOfStored = .twice
    case .eoseEarly: rules.answers.endOfStored = .early
    case .rateLimited, .rateLimitedByNotice:
      rules.limits.budget = RateBudget(
        framesMax: random.number(in: 3..<30), window: .seconds(5),
        form: self == .rateLimited ? .addressed : .noticeForEvents)
    case .foreignEvents: rules.answers.lies.insert(.foreignSubscription)
    case .unaskedEvents: rules.answers.lies.insert(.unasked)
    case .swappedContent: rules.answers.lies.insert(.swappedContent)
    case .shortPages: rules.reading.pageMax = max(20, rules.reading.pageMax / 4)
    case .challengesAgain:
      rules.authentication.challenges = true
      rules.authentication.isNeededToRead = true
    case .deaf: rules.reading.fanOut = .none
    case .silentToBadRequests: rules.answers.toBadRequest = .silence
    case .duplicatesRefused: rules.writing.duplicates = .refused
    case .tampered: rules.answers.lies.insert(.tampered)
    case .backdated: rules.answers.lies.insert(.backdated)
    }
  }
}
