import Nostr

/// One understood line of the line client.
enum ChatLine: Equatable {
  case nothing
  case text(String)
  case channels
  case open(String)
  case history(count: Int?, before: MessageReference?)
  case thread(MessageReference)
  case show(MessageReference)
  case members
  case profile(String?)
  case gaps
  case status
  case reply(MessageReference, String)
  case react(MessageReference, String)
  case unreact(MessageReference, String?)
  case edit(MessageReference, String)
  case delete(MessageReference)
  case activity
  case search(String)
  case block(String?)
  case unblock(String)
  case outbox
  case retry(MessageReference)
  case discard(MessageReference)
  case offline
  case online
  case sync
  case wait(WaitGoal)
  case help(String?)
  case quit

  /// The names of what puts something of one's own into the outbox.
  static let writing: Set<String> = ["send", "reply", "react", "unreact", "edit", "delete"]

  /// The name that the closing `done` row bears.
  var name: String {
    switch self {
    case .nothing: ""
    case .text: "send"
    case .channels: "channels"
    case .open: "open"
    case .history: "history"
    case .thread: "thread"
    case .show: "show"
    case .members: "members"
    case .profile: "profile"
    case .gaps: "gaps"
    case .status: "status"
    case .reply: "reply"
    case .react: "react"
    case .unreact: "unreact"
    case .edit: "edit"
    case .delete: "delete"
    case .activity: "activity"
    case .search: "search"
    case .block: "block"
    case .unblock: "unblock"
    case .outbox: "outbox"
    case .retry: "retry"
    case .discard: "discard"
    case .offline: "offline"
    case .online: "online"
    case .sync: "sync"
    case .wait: "wait"
    case .help: "help"
    case .quit: "quit"
    }
  }
}

/// A message as a person names it.
enum MessageReference: Equatable {
  /// The short number of a row that was shown.
  case number(Int)
  case id(EventID)
  /// The first digits of an id, 8 or more.
  case prefix(String)
}

/// What `/wait` waits for.
enum WaitGoal: Equatable {
  case outbox
  case live
  case time(Duration)
}

/// A line that was not understood: where, and what would have been right.
struct ChatLineError: Error, Equatable {
  let code: String
  /// The command that was meant, where that much was clear.
  let command: String
  /// Counted from 1.
  let column: Int
  let expected: String

  var message: String { "column \(column): \(expected)" }
}
