import SyncCore

/// One piece of upkeep that is done from time to time: `UpkeepSchedule` says when, this waits until
/// then and does it.
actor Chore {
  private let name: String
  private let clock: any SyncClock
  private let tasks: any TaskSpawner
  private let isDone: @Sendable () async -> Bool
  private var schedule: UpkeepSchedule
  private var work: (any SpawnedTask)?
  private var isRunning = false
  private var isClosed = false

  /// - Parameter perform: Does the work, ends soon after its task was cancelled, and says whether
  ///   there is nothing left to do.
  init(
    _ name: String, schedule: UpkeepSchedule, clock: any SyncClock, tasks: any TaskSpawner,
    perform: @escaping @Sendable () async -> Bool
  ) {
    self.name = name
    self.schedule = schedule
    self.clock = clock
    self.tasks = tasks
    isDone = perform
  }

  /// There is reason for it; the wait begins anew.
  func postpone() {
    schedule.postpone(at: clock.uptime())
    begin()
  }

  /// There is reason for it; a wait that has begun goes on.
  func arm() {
    schedule.arm(at: clock.uptime())
    begin()
  }

  /// Returns once nothing of it runs any more, and nothing will.
  func close() async {
    isClosed = true
    work?.cancel()
    await work?.finished()
    work = nil
  }

  private func begin() {
    guard !isRunning, !isClosed else { return }
    isRunning = true
    work = tasks.spawn(name) { [weak self] in await self?.run() }
  }

  private func run() async {
    while !isClosed, let due = schedule.dueAt {
      if clock.uptime() < due {
        do { try await clock.sleep(until: due) } catch { break }
        // It may have been put off meanwhile.
        continue
      }
      schedule.begin()
      if await isDone() {
        schedule.done()
      } else {
        schedule.failed(at: clock.uptime())
      }
    }
    isRunning = false
  }
}
