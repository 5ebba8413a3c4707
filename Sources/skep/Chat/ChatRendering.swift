import HotCache
import Nostr
import SyncCore

/// How rows look to a person. Pure: rows in, lines out, and all text made safe.
struct ChatRendering {
  /// Seconds east of UTC at which days are cut and times are shown.
  let zone: @Sendable (Timestamp) -> Int64
  let columns: Int
  /// Bold and dim, where the output is a terminal that was not asked to do without.
  let hasStyle: Bool
  /// Whether the lines go to a terminal, where they are broken at its edge; elsewhere each line of a
  /// message stays one, so that it can be searched for.
  var isWrapping = false

  private static let nameCells = 20

  // MARK: Messages

  /// A page: a line for each new day, a line for each gap, and the messages, in rising order.
  func page(_ messages: [ShownMessage], gaps: [OpenSpan] = []) -> [String] {
    var lines: [String] = []
    var day: Int64?
    var left = gaps.sorted { $0.to < $1.to }
    for shown in messages {
      while let gap = left.first, gap.to <= shown.row.createdAt {
        lines.append(gapLine(left.removeFirst()))
        _ = gap
      }
      let today = local(shown.row.createdAt) / 86_400
      if today != day {
        lines.append(dayLine(shown.row.createdAt))
        day = today
      }
      lines += message(shown)
    }
    return lines + left.map(gapLine)
  }

  func message(_ shown: ShownMessage) -> [String] {
    let row = shown.row
    let name = SafeText.name(shown.authorName ?? .empty) ?? String(row.author.hex.prefix(8))
    let author = CellWidth.padded(CellWidth.clamp(name, to: Self.nameCells), to: 12)
    let head = "\(clock(row.createdAt)) \(dim(CellWidth.padded("#\(shown.number)", to: 5))) "
    let indent = String(repeating: " ", count: 12)
    var body = row.isDeleted ? ["(deleted)"] : SafeText.lines(row.text)
    if let title = row.title, !row.isDeleted {
      body.insert("[\(SafeText.line(title, cells: 80))]", at: 0)
    }
    if let answered = shown.repliesTo { body[0] = "↳ #\(answered) " + body[0] }
    body = folded(body, number: shown.number)
    if isWrapping { body = wrapped(body, first: columns - 13 - CellWidth.of(author)) }
    var lines = ["\(head)\(bold(author)) \(body[0])"] + body.dropFirst().map { indent + $0 }
    let marks = marks(shown)
    if !marks.isEmpty { lines[lines.count - 1] += "  " + dim(marks.joined(separator: " · ")) }
    return lines
  }

  /// The most characters and lines of one message that stand in a page.
  static let shownMax = (characters: 4000, lines: 60)

  /// Cut where it would push everything else off the screen, with a word on how to see the rest.
  private func folded(_ lines: [String], number: Int) -> [String] {
    var kept: [String] = []
    var left = Self.shownMax.characters
    for line in lines.prefix(Self.shownMax.lines) where left > 0 {
      kept.append(String(line.prefix(left)))
      left -= line.count + 1
    }
    let more = lines.reduce(0) { $0 + $1.count } - kept.reduce(0) { $0 + $1.count }
    return more > 0 ? kept + ["… \(more) more characters, /show #\(number)"] : kept
  }

  /// Broken at the edge of the terminal, between words where there are any.
  private func wrapped(_ lines: [String], first: Int) -> [String] {
    var result: [String] = []
    for line in lines {
      var rest = line[...]
      repeat {
        let cells = max(10, result.isEmpty ? first : columns - 12)
        let piece = CellWidth.piece(of: rest, cells: cells)
        rest = rest[piece.endIndex...]
        result.append(String(piece))
        if !rest.isEmpty, rest.first == " " { rest = rest.dropFirst() }
      } while !rest.isEmpty
    }
    return result
  }

  private func marks(_ shown: ShownMessage) -> [String] {
    let row = shown.row
    var marks: [String] = []
    if let delivery = shown.delivery {
      marks.append(Self.mark(of: delivery))
    } else if shown.isMine {
      marks.append("✓")
    }
    if row.isStray { marks.append("reply to a message not shown here") }
    if row.isPinned { marks.append("pinned") }
    if row.isEdited && !row.isDeleted { marks.append("edited") }
    if row.redatedFrom != nil { marks.append("re-dated") }
    if row.isFuture { marks.append("dated in the future") }
    if row.replies > 0 { marks.append(row.replies == 1 ? "1 reply" : "\(row.replies) replies") }
    if !row.reactions.isEmpty {
      marks.append(
        row.reactions.prefix(8).map {
          "\(SafeText.reaction($0.emoji))\($0.isMine ? "*" : "") \($0.count)"
        }
        .joined(separator: "  "))
    }
    return marks
  }

  static func mark(of delivery: Delivery) -> String {
    let why = delivery.reason.map { ": " + SafeText.line($0, cells: 80) } ?? ""
    return switch delivery.state {
    case .queued: "… waits to be sent"
    case .sending: "… being sent"
    case .unknown: "? no answer yet"
    case .held: "… held\(why)"
    case .refused: "✗ refused\(why)"
    case .expired: "✗ too old for the relay\(why)"
    case .sent: "✓"
    }
  }

  // MARK: Lists

  func channel(
    _ group: GroupRow, number: Int, name: String, isOpen: Bool, hasAccess: Bool,
    showsID: Bool = false
  ) -> [String] {
    var facts: [String] = []
    if showsID { facts.append("id " + SafeText.line(group.id, cells: 80)) }
    if let members = group.members { facts.append("\(members) members") }
    if let last = group.lastAt { facts.append("last \(day(last)) \(clock(last))") }
    if group.isPrivate { facts.append("private") }
    if group.isArchived { facts.append("archived") }
    if !hasAccess { facts.append("no access") }
    if group.state != .relay { facts.append(group.state.rawValue) }
    let mark = isOpen ? "▸" : " "
    var lines = [
      "\(mark) \(dim(CellWidth.padded("#\(number)", to: 4))) \(bold(CellWidth.padded(CellWidth.clamp(name, to: 28), to: 18)))  \(dim(facts.joined(separator: " · ")))"
    ]
    if let about = group.about, !about.isEmpty {
      lines.append("       " + SafeText.line(about, cells: max(20, columns - 7)))
    }
    return lines
  }

  func activity(_ row: ActivityRow, number: Int, name: Text?) -> String {
    let author = SafeText.name(name ?? .empty) ?? String(row.author.hex.prefix(8))
    let text = SafeText.line(row.text, cells: max(20, columns - 40))
    let what =
      switch row.reason {
      case .mention: "names you in #\(number): \(text)"
      case .reply: "answers #\(number): \(text)"
      case .reaction: "\(SafeText.reaction(row.text)) to #\(number)"
      }
    return "\(day(row.createdAt)) \(clock(row.createdAt)) "
      + bold(CellWidth.padded(CellWidth.clamp(author, to: Self.nameCells), to: 12)) + " " + what
  }

  func member(_ member: MemberRow, name: Text?) -> String {
    let shown = SafeText.name(name ?? .empty) ?? String(member.pubkey.hex.prefix(8))
    let roles = member.roles.map { SafeText.line($0, cells: 20) }.joined(separator: ", ")
    return
      "  \(CellWidth.padded(CellWidth.clamp(shown, to: 28), to: 18))  \(dim(member.pubkey.hex.prefix(8) + (roles.isEmpty ? "" : "  " + roles)))"
  }

  func profile(_ key: PublicKey, _ profile: ProfileRow?) -> [String] {
    var lines = [bold(SafeText.name(profile?.shownName ?? .empty) ?? String(key.hex.prefix(8)))]
    lines.append("  " + NameWords.npub(key))
    guard let profile else { return lines + ["  nothing published, or nothing seen of it"] }
    for (label, value) in [
      ("about", profile.about), ("picture", profile.picture), ("nip05", profile.nip05),
      ("lud16", profile.lud16),
    ] {
      guard let value else { continue }
      lines.append("  \(label): \(SafeText.line(value, cells: max(20, columns - 12)))")
    }
    return lines
  }

  func gapLine(_ gap: OpenSpan) -> String {
    dim(
      "── not proved complete: \(Rows.span(gap.from, gap.to)): \(SafeText.line(gap.why, cells: 80)) ──"
    )
  }

  // MARK: Time

  private func dayLine(_ time: Timestamp) -> String { dim("── \(day(time)) ──") }

  private func day(_ time: Timestamp) -> String {
    String(TimeWords.rfc3339(Timestamp(local(time))).prefix(10))
  }

  private func clock(_ time: Timestamp) -> String {
    let minutes = local(time) % 86_400 / 60
    return TimeWords.padded(minutes / 60, 2) + ":" + TimeWords.padded(minutes % 60, 2)
  }

  /// Seconds as the wall clock of the zone counts them; hostile times stay in what can be shown.
  private func local(_ time: Timestamp) -> Int64 {
    let seconds = min(max(time.seconds, 0), 253_402_300_799)
    return max(0, seconds + zone(Timestamp(seconds)))
  }

  private func bold(_ text: String) -> String { hasStyle ? "\u{1b}[1m\(text)\u{1b}[0m" : text }

  private func dim(_ text: some StringProtocol) -> String {
    hasStyle ? "\u{1b}[2m\(text)\u{1b}[0m" : String(text)
  }
}
