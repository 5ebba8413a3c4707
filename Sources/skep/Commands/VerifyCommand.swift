import Nostr
import NostrCrypto
import SyncEngine

/// `skep verify [FILE|-]`.
enum VerifyCommand: Command {
  static let spec = CommandSpec(
    "verify", "[FILE|-]", count: 0...1,
    about: "Checks every event of the log, its coverage and its cache; or the lines of a file.",
    examples: ["skep verify", "skep verify events.jsonl --json"])

  static func run(_ context: Context) async throws -> ExitCode {
    guard let path = context.invocation.operands.first else {
      return try await LogCheck(context).run()
    }
    return try await verifyFile(path, context)
  }

  private static func verifyFile(_ path: String, _ context: Context) async throws -> ExitCode {
    let source = try ByteSource(path: path, stop: context.stop)
    var lines = LineCutter()
    let checker = CheckedLines()
    var progress = Progress()
    progress.total = source.size
    var ok = 0
    var rejected = 0
    var read = 0
    var isAtEnd = false
    while !isAtEnd {
      if let piece = try await source.next() {
        lines.append(piece[...])
        read += piece.count
      } else {
        lines.finish()
        isAtEnd = true
      }
      guard lines.hasLines else { continue }
      let block = lines.take()
      for (line, verdict) in zip(block.lines, await checker.verdicts(on: block)) {
        if case .verified = verdict { ok += 1 } else { rejected += 1 }
        try write(line.number, verdict, context)
      }
      context.talk.progress(progress.line("verified", done: ok + rejected, part: read))
      if context.out.isTerminal { try context.out.flush() }
    }
    if context.wantsJSON {
      try context.out.write(row: [
        "type": "summary", "ok": JSON(ok), "rejected": JSON(rejected),
      ])
    } else {
      context.talk.say("\(ok) verified, \(rejected) rejected")
    }
    return rejected == 0 ? .done : .invalid
  }

  private static func write(_ number: Int, _ verdict: Verdict, _ context: Context) throws {
    switch verdict {
    case .verified(let event):
      let id = event.event.id.hex
      guard context.wantsJSON else {
        let form = event.idForm == .standard ? "" : " (id form \(event.idForm.name))"
        return try context.out.write(line: "\(number): ok \(id)\(form)")
      }
      try context.out.write(row: [
        "line": JSON(number), "id": JSON(id), "verdict": "ok", "reason": nil,
        "id_form": JSON(event.idForm.name),
      ])
    case .rejected(let id, let reason, let detail):
      guard context.wantsJSON else {
        return try context.out.write(
          line: "\(number): rejected, \(reason): \(SafeText.line(detail, cells: 200))")
      }
      try context.out.write(row: [
        "line": JSON(number), "id": JSON(id?.hex), "verdict": "rejected", "reason": JSON(reason),
        "id_form": nil, "detail": JSON(detail),
      ])
    }
  }
}
