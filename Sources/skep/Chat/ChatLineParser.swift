import Nostr

/// Reads one line of the line client. Pure: it knows no channel, no message and no terminal.
///
/// A line that begins with `/` is a command; `//` begins a message with one slash; any other line
/// is a message.
enum ChatLineParser {
  /// What `/help` lists, in its order.
  static let usages: [(name: String, operands: String, about: String)] = [
    ("channels", "", "lists the channels"),
    ("open", "NAME|ID|#n", "opens a channel and shows its newest messages"),
    ("history", "[N] [--before #n]", "shows messages of the open channel"),
    ("thread", "#n", "shows a message and its replies"),
    ("activity", "", "shows who named you, answered you, or reacted to what you wrote"),
    ("search", "TEXT", "finds messages by the beginnings of words, or by \"phrases\""),
    ("show", "#n", "shows the event as it was signed"),
    ("members", "", "lists the members of the open channel"),
    ("profile", "[NAME]", "shows what somebody says about themselves"),
    ("gaps", "", "lists spans of time that could not be proved complete"),
    ("status", "", "shows connections, coverage and the outbox"),
    ("reply", "#n TEXT", "answers a message"),
    ("react", "#n EMOJI", "reacts to a message"),
    ("unreact", "#n [EMOJI]", "takes a reaction back"),
    ("edit", "#n TEXT", "gives a message of yours another text"),
    ("delete", "#n", "deletes a message of yours, or a member's where you moderate"),
    ("block", "[NAME]", "hides what somebody writes, here alone; without a name, lists"),
    ("unblock", "NAME", "shows it again"),
    ("outbox", "", "lists what was not sent yet, and why"),
    ("retry", "#n", "tries a message again"),
    ("discard", "#n", "gives a message up"),
    ("offline", "", "closes the connections"),
    ("online", "", "connects again"),
    ("sync", "", "reconciles now, and says how that went"),
    ("wait", "[outbox|live|SECONDS]", "waits until the outbox is empty, or all is caught up"),
    ("help", "[COMMAND]", "this list"),
    ("quit", "", "ends the program"),
  ]

  static let historyMax = 10_000

  static func parse(_ line: String) throws(ChatLineError) -> ChatLine {
    guard line.first == "/" else {
      return line.allSatisfy(\.isWhitespace) ? .nothing : .text(line)
    }
    if line.hasPrefix("//") { return .text(String(line.dropFirst())) }
    var words = Words(line)
    let word = words.next() ?? Words.Word(text: "/", column: 1)
    let name = String(word.text.dropFirst())
    guard usages.contains(where: { $0.name == name }) else {
      let near = Suggestion.nearest(to: name, among: usages.map(\.name))
      throw ChatLineError(
        code: "unknown-command", command: name, column: 1,
        expected: "unknown command /\(SafeText.line(name, cells: 40)); "
          + (near.map { "did you mean /\($0)?" } ?? "/help lists them"))
    }
    let result = try command(name, &words)
    if let extra = words.next() {
      throw failure(name, extra.column, "expected the end of the line")
    }
    return result
  }

  private static func command(
    _ name: String, _ words: inout Words
  ) throws(ChatLineError) -> ChatLine {
    switch name {
    case "channels": return .channels
    case "open": return .open(try rest(name, &words, "the name or id of a channel"))
    case "history": return try history(&words)
    case "thread": return .thread(try reference(name, &words))
    case "show": return .show(try reference(name, &words))
    case "members": return .members
    case "profile": return .profile(words.rest().map(\.text))
    case "gaps": return .gaps
    case "status": return .status
    case "reply":
      let target = try reference(name, &words)
      return .reply(target, try rest(name, &words, "the text of the reply"))
    case "react":
      let target = try reference(name, &words)
      guard let emoji = words.next() else {
        throw failure(name, words.end, "expected an emoji or a :code:")
      }
      return .react(target, emoji.text)
    case "unreact": return .unreact(try reference(name, &words), words.next()?.text)
    case "edit":
      let target = try reference(name, &words)
      return .edit(target, try rest(name, &words, "the new text"))
    case "delete": return .delete(try reference(name, &words))
    case "activity": return .activity
    case "search": return .search(try rest(name, &words, "what to look for"))
    case "block": return .block(words.rest().map(\.text))
    case "unblock": return .unblock(try rest(name, &words, "a name or a key"))
    default: return try sessionCommand(name, &words)
    }
  }

  /// The outbox and the session itself.
  private static func sessionCommand(
    _ name: String, _ words: inout Words
  ) throws(ChatLineError) -> ChatLine {
    switch name {
    case "outbox": return .outbox
    case "retry": return .retry(try reference(name, &words))
    case "discard": return .discard(try reference(name, &words))
    case "offline": return .offline
    case "online": return .online
    case "sync": return .sync
    case "wait": return .wait(try goal(&words))
    case "help": return .help(words.next()?.text.trimmedSlash)
    default: return .quit
    }
  }

  private static func history(_ words: inout Words) throws(ChatLineError) -> ChatLine {
    var count: Int?
    var before: MessageReference?
    while let word = words.next() {
      if word.text == "--before", before == nil {
        before = try reference("history", &words)
      } else if let number = Int(word.text), (1...historyMax).contains(number), count == nil {
        count = number
      } else {
        throw failure(
          "history", word.column, "expected a number from 1 to \(historyMax), or --before #n")
      }
    }
    return .history(count: count, before: before)
  }

  private static func goal(_ words: inout Words) throws(ChatLineError) -> WaitGoal {
    guard let word = words.next() else { return .outbox }
    switch word.text {
    case "outbox": return .outbox
    case "live": return .live
    default:
      guard let time = TimeWords.duration(word.text), time <= .seconds(86_400) else {
        throw failure("wait", word.column, "expected outbox, live, or a number of seconds")
      }
      return .time(time)
    }
  }

  private static func reference(
    _ command: String, _ words: inout Words
  ) throws(ChatLineError) -> MessageReference {
    let expected = "expected a message: #n, an id, or an id's first 8 digits"
    guard let word = words.next() else { throw failure(command, words.end, expected) }
    guard let reference = MessageReference(word.text) else {
      throw failure(command, word.column, expected)
    }
    return reference
  }

  private static func rest(
    _ command: String, _ words: inout Words, _ what: String
  ) throws(ChatLineError) -> String {
    guard let rest = words.rest() else { throw failure(command, words.end, "expected \(what)") }
    return rest.text
  }

  private static func failure(_ command: String, _ column: Int, _ expected: String) -> ChatLineError
  {
    ChatLineError(code: "syntax", command: command, column: column, expected: expected)
  }
}

/// The words of a line and the columns they begin at.
private struct Words {
  struct Word {
    let text: String
    let column: Int
  }

  private var left: Substring
  private var column = 1

  init(_ line: String) { left = line[...] }

  /// The column after the last character.
  var end: Int { column + left.count }

  mutating func next() -> Word? {
    skipSpaces()
    let word = left.prefix { !$0.isWhitespace }
    guard !word.isEmpty else { return nil }
    let start = column
    advance(word.count)
    return Word(text: String(word), column: start)
  }

  /// All that is left, without the spaces around it.
  mutating func rest() -> Word? {
    skipSpaces()
    let start = column
    var text = left
    advance(left.count)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text.isEmpty ? nil : Word(text: String(text), column: start)
  }

  private mutating func skipSpaces() { advance(left.prefix(while: \.isWhitespace).count) }

  private mutating func advance(_ count: Int) {
    left = left.dropFirst(count)
    column += count
  }
}

extension MessageReference {
  init?(_ word: String) {
    if word.hasPrefix("#") {
      let digits = word.dropFirst()
      guard let number = Int(digits), number > 0, digits.allSatisfy(\.isASCII) else { return nil }
      self = .number(number)
    } else if let id = NameWords.eventID(word) {
      self = .id(id)
    } else {
      let digits = word.lowercased()
      guard (8...63).contains(digits.utf8.count), digits.allSatisfy(\.isHexDigit) else {
        return nil
      }
      self = .prefix(digits)
    }
  }
}

extension String {
  fileprivate var trimmedSlash: String { hasPrefix("/") ? String(dropFirst()) : self }
}
