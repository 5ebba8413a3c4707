import Glibc

@main
struct Program {
  static func main() async {
    let stop = Stop()
    stop.takeSignals()
    let shell = Shell(stop: stop)
    let arguments = Array(CommandLine.arguments.dropFirst())
    let command = Task { @MainActor in await shell.run(arguments) }
    stop.onRequest { command.cancel() }
    let code = await command.value
    exit((stop.code ?? code).rawValue)
  }
}
