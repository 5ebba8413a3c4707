/// The text of `--help`.
enum Help {
  static func text(for command: [String]) -> String {
    guard let name = command.first, let spec = CommandTable.command(name)?.spec else {
      return overview
    }
    if command.count > 1, let verb = spec.verb(command[1]) {
      return text(verb, path: name + " " + verb.name)
    }
    return text(spec, path: name)
  }

  private static var overview: String {
    var lines = [
      "skep keeps a complete, verified copy of a Nostr group community on this machine.", "",
      "usage: skep [OPTIONS] COMMAND …", "",
    ]
    lines += columns(CommandTable.specs.map { ($0.name, $0.about) })
    lines += ["", "options of every command, before or after its name:"]
    lines += columns(OptionSpec.common.map { ($0.usage, $0.about) })
    lines += [
      "", "“skep COMMAND --help” says more about one. On a terminal, skep alone is skep chat.",
      "", "examples:",
      "  skep mirror wss://relay.example.com",
      "  skep chat --offline",
    ]
    return lines.joined(separator: "\n") + "\n"
  }

  private static func text(_ spec: CommandSpec, path: String) -> String {
    var usage = "usage: skep \(path)"
    if !spec.verbs.isEmpty { usage += " " + spec.verbs.map(\.name).joined(separator: "|") }
    if !spec.operands.isEmpty { usage += " " + spec.operands }
    if !spec.options.isEmpty { usage += " [OPTIONS]" }
    var lines = [usage, "", spec.about]
    if !spec.verbs.isEmpty {
      let rows = spec.verbs.map {
        ($0.name + ($0.operands.isEmpty ? "" : " \($0.operands)"), $0.about)
      }
      lines += [""] + columns(rows)
    }
    let options = spec.options + spec.verbs.flatMap(\.options).filter { !spec.options.contains($0) }
    if !options.isEmpty {
      lines += ["", "options:"] + columns(unique(options).map { ($0.usage, $0.about) })
    }
    lines += ["", "options of every command:"]
    lines += columns(OptionSpec.common.map { ($0.usage, $0.about) })
    lines += ["", "examples:"] + spec.examples.map { "  " + $0 }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func unique(_ options: [OptionSpec]) -> [OptionSpec] {
    options.reduce(into: []) { kept, option in
      if !kept.contains(where: { $0.name == option.name }) { kept.append(option) }
    }
  }

  private static func columns(_ rows: [(String, String)]) -> [String] {
    let width = min(30, rows.map { CellWidth.of($0.0) }.max() ?? 0)
    return rows.map { "  " + CellWidth.padded($0.0, to: width) + "  " + $0.1 }
  }
}
