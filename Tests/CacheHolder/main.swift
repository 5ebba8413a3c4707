import EventLog
import Glibc
import HotCache
import SyncCore

// Opens the cache in the folder named first over the log named second, and stays inside one read
// until its input ends: what a reader is that can be killed.
let arguments = CommandLine.arguments
guard arguments.count == 3 else { exit(64) }
do {
  let log = try LogReader.open(path: arguments[2])
  let views = try CacheReader.open(directory: arguments[1], log: log)
  guard views.state == .ok else { exit(2) }
  try views.read { view throws(CacheError) in
    print("reading \(view.applied.number)")
    fflush(nil)
    while getchar() != EOF {}
  }
} catch {
  print("\(error)")
  exit(1)
}
