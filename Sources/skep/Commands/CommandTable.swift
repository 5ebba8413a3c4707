/// All commands, in the order of the help.
enum CommandTable {
  static let all: [any Command.Type] = [
    MirrorCommand.self, JoinCommand.self, SyncCommand.self, RelayCommand.self, KeyCommand.self,
    ChatCommand.self,
    StatusCommand.self, OutboxCommand.self, QueryCommand.self, SearchCommand.self,
    ImportCommand.self,
    ExportCommand.self, VerifyCommand.self, ServeCommand.self, DemoRelayCommand.self,
    DoctorCommand.self, BenchCommand.self,
  ]

  static let specs = all.map { $0.spec }

  static func command(_ name: String) -> (any Command.Type)? {
    all.first { $0.spec.name == name }
  }
}
