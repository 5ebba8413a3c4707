import EventLog
import Foundation
import Glibc
import HotCache
import Nostr
import NostrCrypto
import SyncEngine

/// The frame around every command: the command line in, the exit code out, and each kind of error
/// as one sentence on stderr.
struct Shell {
  static let version = "0.1.0"
  static let versionText = Text(version)

  let stop: Stop

  func run(_ arguments: [String]) async -> ExitCode {
    let out = StandardOutput()
    let parsed: Invocation
    do throws(UsageError) {
      parsed = try ArgumentParser(commands: CommandTable.specs).parse(arguments)
    } catch {
      return complain(error)
    }
    let talk = Talk(isQuiet: parsed.has("quiet"), isVerbose: parsed.has("verbose"))
    do {
      let code = try await run(parsed, out, talk)
      talk.endProgress()
      try out.flush()
      return code
    } catch {
      talk.endProgress()
      // What was answered before the failure is still an answer.
      if !(error is OutputClosed) { _ = try? out.flush() }
      return exitCode(of: error, talk)
    }
  }

  private func run(
    _ invocation: Invocation, _ out: StandardOutput, _ talk: Talk
  ) async throws -> ExitCode {
    if invocation.wantsVersion {
      try out.write(line: "skep \(Self.version)")
      return .done
    }
    if invocation.wantsHelp {
      try out.write(Help.text(for: invocation.command).utf8)
      return .done
    }
    // On a terminal the line client is what people come for.
    let name = invocation.command.first ?? (isatty(STDIN_FILENO) == 1 ? ChatCommand.spec.name : "")
    guard let command = CommandTable.command(name) else {
      throw UsageError("which command? “skep --help” lists them")
    }
    let context = Context(
      invocation: invocation, out: out, talk: talk, stop: stop,
      environment: ProcessInfo.processInfo.environment)
    return try await command.run(context)
  }

  private func exitCode(of error: any Error, _ talk: Talk) -> ExitCode {
    switch error {
    case is OutputClosed: return .done
    case is CancellationError: return stop.code ?? .interrupted
    case let error as ByteSourceError where error == .stopped: return stop.code ?? .interrupted
    case let error as UsageError: return complain(error)
    default:
      let failure = Failure(error)
      talk.complain(failure.message)
      return failure.code
    }
  }

  private func complain(_ error: UsageError) -> ExitCode {
    let talk = Talk(isQuiet: false, isVerbose: false)
    talk.complain(error.message)
    talk.say("“skep \(error.command.map { $0.isEmpty ? "" : $0 + " " } ?? "")--help” says more")
    return .usage
  }
}

extension Failure {
  /// The failure that an error of the engine's is to the user.
  init(_ error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let error as KeyFileError: self.init(error)
    case let error as LogError: self.init(error)
    case let error as StoreError: self.init(error)
    case let error as EngineError: self.init(error)
    case let error as IngestError: self.init(error)
    case let error as ByteSourceError: self.init(.io, error.description)
    case CacheError.log(let error): self.init(error)
    case let error as CacheError: self.init(.invalid, error.description)
    default: self.init(.partial, String(describing: error))
    }
  }

  init(_ error: LogError) {
    let code: ExitCode =
      switch error {
      case .damaged, .lost: .invalid
      case .newer, .notALog, .missing, .full, .readOnly, .io, .migrationChanged, .closed: .io
      case .busy: .busy
      case .unknownMessage, .alreadySent, .ephemeral: .partial
      }
    self.init(code, error.description)
  }

  init(_ error: StoreError) {
    switch error {
    case .inUse: self.init(.busy, error.description)
    case .readOnly, .full, .io: self.init(.io, error.description)
    case .log(let error): self.init(error)
    }
  }

  init(_ error: IngestError) {
    switch error {
    case .source(let error): self.init(.io, error.description)
    case .log(let error): self.init(error)
    case .cancelled: self.init(.interrupted, "stopped")
    }
  }

  init(_ error: KeyFileError) {
    switch error {
    case .needsPassphrase:
      self.init(.key, error.description + ": set SKEP_PASSPHRASE, or run this on a terminal")
    case .tooOpen, .folderTooOpen, .linkToNothing, .malformed, .doesNotDecrypt, .cannotDecrypt:
      self.init(.key, error.description)
    case .missing, .exists: self.init(.partial, error.description)
    case .io(let path, "read", EACCES):
      self.init(
        .key,
        "the key at \(path) may not be read: permission denied; run this as the user whose it is, or"
          + " choose another home")
    case .io(let path, let doing, let code):
      self = SystemError.failure(code, doing: "could not \(doing) \(path)")
    }
  }
}
