import Glibc
import SimulationKit
import SimulationScenarios

/// `skep-sim`: runs simulations and says what came of them.
@main struct Program {
  static func main() {
    do throws(UsageError) {
      let command = try Command(Array(CommandLine.arguments.dropFirst()))
      exit(try command.run())
    } catch {
      Output.talk("skep-sim: \(error.message)\n\n\(Command.usage)")
      exit(64)
    }
  }
}
