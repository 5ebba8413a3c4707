import Nostr
import NostrCrypto
import Platform
import RelayServer

/// Validly signed events shaped like a busy community's: messages, replies, reactions, edits and
/// deletions, the same for the same seed but for their signatures.
struct BenchCorpus {
  private let authors: [LocalSigner]
  private let groups = (0..<12).map { Text("bench-\($0)") }
  private let seed: UInt64
  private static let chunk = 2000

  init(seed: UInt64) {
    self.seed = seed
    authors = (0..<200).map { _ in LocalSigner(SecretKey.generate()) }
  }

  /// Writes `count` events as JSON lines, a piece at a time.
  func write(_ count: Int, to path: String, on work: any ParallelWork) async throws {
    let file = try AtomicFile(path)
    var random = SplitMix64(seed: seed)
    var recent: [(id: EventID, group: Text)] = []
    var made = 0
    while made < count {
      let size = min(Self.chunk, count - made)
      let drafts = (0..<size).map { draft(number: made + $0, recent, &random) }
      let slots = Lock([Event?](repeating: nil, count: size))
      await work.run(count: size) { index in
        // A draft that cannot be signed is left out below, which the count would show.
        let signed = try? drafts[index].author.signed(drafts[index].draft)
        slots.withLock { $0[index] = signed?.event }
      }
      let events = slots.withLock { $0 }.compactMap { $0 }
      for event in events { try file.write(event.json() + [UInt8(ascii: "\n")]) }
      recent = events.suffix(200).compactMap { event in
        event.kind == .message ? event.group.map { (event.id, $0) } : nil
      }
      made += size
    }
    try file.finish()
  }

  private func draft(
    number: Int, _ recent: [(id: EventID, group: Text)], _ random: inout SplitMix64
  ) -> (author: LocalSigner, draft: EventDraft) {
    let author = random.element(of: authors)
    var tags: [[Text]] = [["h", random.element(of: groups)]]
    var kind = EventKind.message
    var text = Text("Message \(number). " + String(repeating: "Lorem ipsum dolor. ", count: 3))
    if !recent.isEmpty, random.chance(35) {
      let target = random.element(of: recent)
      let id = Text(target.id.hex)
      tags = [["h", target.group]]
      switch random.number(in: 0..<35) {
      case 0..<18:
        kind = .reaction
        tags.append(["e", id])
        text = "👍"
      case 18..<31: tags.append(["e", id, "", "reply"])
      case 31..<33:
        kind = .edit
        tags.append(["e", id])
      default:
        kind = .deletion
        tags.append(["e", id])
        text = ""
      }
    }
    let time = Timestamp(1_750_000_000 + Int64(number / 3))
    return (author, EventDraft(createdAt: time, kind: kind, tags: Tags(tags), content: text))
  }
}
