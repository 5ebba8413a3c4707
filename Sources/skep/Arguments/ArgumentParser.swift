/// Reads a command line against the table of commands.
///
/// It decides nothing about the world: the same words always give the same invocation. Values are
/// kept as written; each command reads its own.
struct ArgumentParser {
  let commands: [CommandSpec]

  func parse(_ arguments: [String]) throws(UsageError) -> Invocation {
    var state = State(words: arguments[...])
    while let word = state.words.popFirst() {
      if state.areOptionsOver || word == "-" || !word.hasPrefix("-") {
        try take(operand: word, into: &state)
      } else if word == "--" {
        state.areOptionsOver = true
      } else {
        try take(option: word, into: &state)
      }
    }
    try finish(&state)
    return state.invocation
  }

  private struct State {
    var words: ArraySlice<String>
    var areOptionsOver = false
    var invocation = Invocation()
    var command: CommandSpec?
    var verb: CommandSpec?

    var spec: CommandSpec? { verb ?? command }
    var path: String? {
      invocation.command.isEmpty ? nil : invocation.command.joined(separator: " ")
    }
  }

  private func take(operand word: String, into state: inout State) throws(UsageError) {
    guard let command = state.command else {
      // What many programs take; “help” may stand where a command may, and means the option.
      if word == "help" {
        state.invocation.options["help"] = [""]
        return
      }
      guard let found = commands.first(where: { $0.name == word }) else {
        throw UsageError(
          "unknown command \(quoted(word))" + suggestion(word, among: commands.map(\.name)))
      }
      state.command = found
      state.invocation.command = [word]
      return
    }
    guard !command.verbs.isEmpty, state.verb == nil else {
      state.invocation.operands.append(word)
      return
    }
    guard let verb = command.verb(word) else {
      let names = command.verbs.map(\.name)
      throw UsageError(
        "\(command.name) has no verb \(quoted(word)); it has \(names.joined(separator: ", "))"
          + suggestion(word, among: names), command: command.name)
    }
    state.verb = verb
    state.invocation.command.append(word)
  }

  private func take(option word: String, into state: inout State) throws(UsageError) {
    if word == "-h" {
      state.invocation.options["help"] = [""]
      return
    }
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0].dropFirst(2))
    let attached = parts.count > 1 ? String(parts[1]) : nil
    guard word.hasPrefix("--"), let spec = option(named: name, in: state) else {
      throw unknownOption(String(parts[0]), in: state)
    }
    if state.invocation.options[name] != nil && !spec.repeats && spec.value != nil {
      throw UsageError("--\(name) is given twice", command: state.path)
    }
    guard let placeholder = spec.value else {
      guard attached == nil else {
        throw UsageError("--\(name) takes no value", command: state.path)
      }
      state.invocation.options[name] = [""]
      return
    }
    guard let value = attached ?? state.words.first, attached != nil || !value.hasPrefix("--")
    else { throw UsageError("--\(name) needs a value: \(placeholder)", command: state.path) }
    if attached == nil { state.words.removeFirst() }
    state.invocation.options[name, default: []].append(value)
  }

  private func option(named name: String, in state: State) -> OptionSpec? {
    if let common = OptionSpec.common.first(where: { $0.name == name }) { return common }
    if let own = state.spec?.options.first(where: { $0.name == name }) { return own }
    // A verb that may be left out lends its options to the bare command.
    guard state.verb == nil, let command = state.command, let verb = command.defaultVerb
    else { return nil }
    return command.verb(verb)?.options.first { $0.name == name }
  }

  private func unknownOption(_ word: String, in state: State) -> UsageError {
    var names = OptionSpec.common.map { "--\($0.name)" }
    names += state.spec?.options.map { "--\($0.name)" } ?? []
    let place = state.path.map { " of \($0)" } ?? ""
    return UsageError(
      "unknown option \(quoted(word))\(place)" + suggestion(word, among: names),
      command: state.path)
  }

  private func finish(_ state: inout State) throws(UsageError) {
    if state.invocation.wantsHelp || state.invocation.wantsVersion { return }
    guard let command = state.command else { return }
    if !command.verbs.isEmpty && state.verb == nil {
      guard let name = command.defaultVerb, let verb = command.verb(name) else {
        let names = command.verbs.map(\.name).joined(separator: ", ")
        throw UsageError("\(command.name) needs a verb: \(names)", command: command.name)
      }
      state.verb = verb
      state.invocation.command.append(name)
    }
    guard let spec = state.spec else { return }
    let count = state.invocation.operands.count
    guard !spec.operandCount.contains(count) else { return }
    let path = state.path ?? spec.name
    if count < spec.operandCount.lowerBound {
      throw UsageError("\(path) needs \(spec.operands)", command: path)
    }
    let extra = state.invocation.operands[spec.operandCount.upperBound]
    throw UsageError("\(path) has no use for \(quoted(extra))", command: path)
  }

  private func quoted(_ word: String) -> String { "“" + SafeText.line(word, cells: 60) + "”" }

  private func suggestion(_ word: String, among names: [String]) -> String {
    Suggestion.nearest(to: word, among: names).map { "; did you mean \($0)?" } ?? ""
  }
}
