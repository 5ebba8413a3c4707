/// All commands, in the order of the help.
enum CommandTable {
  static let all: [any Command.Type] = [
    KeyCommand.self, VerifyCommand.self, ExportCommand.self, QueryCommand.self,
    StatusCommand.self, ImportCommand.self, OutboxCommand.self, DemoRelayCommand.self,
    ServeCommand.self,
    DoctorCommand.self, BenchCommand.self,
  ]

  static let specs = all.map { $0.spec }

  static func command(_ name: String) -> (any Command.Type)? {
    all.first { $0.spec.name == name }
  }
}
