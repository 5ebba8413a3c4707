import CEdit
import Glibc

@main
struct Program {
  static func main() async {
    // Before anything opens a file, which would take the number of a closed stream.
    StandardStreams.occupy()
    skep_use_utf8()
    let stop = Stop()
    stop.takeSignals()
    let shell = Shell(stop: stop)
    let arguments = Array(CommandLine.arguments.dropFirst())
    let command = Task { @MainActor in await shell.run(arguments) }
    stop.onRequest { command.cancel() }
    let code = await command.value
    // Everything is written and closed by now. A plain `exit` would run the C libraries' own
    // endings while their threads still run, and crash one time in ten.
    _exit((stop.code ?? code).rawValue)
  }
}
