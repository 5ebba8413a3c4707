import SyncCore
import Testing

@Suite struct UpkeepScheduleTests {
  private func schedule() -> UpkeepSchedule {
    UpkeepSchedule(firstWait: .seconds(5), waitMax: .seconds(30))
  }

  @Test func `nothing is due without a reason`() {
    var schedule = schedule()
    #expect(schedule.dueAt == nil)
    schedule.postpone(at: .seconds(1))
    schedule.begin()
    schedule.done()
    #expect(schedule.dueAt == nil)
  }

  @Test func `a reason that comes while the chore is done is not forgotten`() {
    var schedule = schedule()
    schedule.postpone(at: .seconds(1))
    schedule.begin()
    schedule.postpone(at: .seconds(7))
    schedule.done()
    #expect(schedule.dueAt == .seconds(12))
  }

  @Test func `each new reason puts a chore off, unless it only arms`() {
    var schedule = schedule()
    schedule.postpone(at: .seconds(1))
    schedule.postpone(at: .seconds(3))
    #expect(schedule.dueAt == .seconds(8))
    schedule.arm(at: .seconds(7))
    #expect(schedule.dueAt == .seconds(8))
  }

  @Test func `after each failure the wait doubles up to its bound, and success forgets it`() {
    var schedule = schedule()
    schedule.arm(at: .zero)
    var waits: [Duration] = []
    for _ in 0..<4 {
      schedule.begin()
      schedule.failed(at: .seconds(100))
      waits.append((schedule.dueAt ?? .zero) - .seconds(100))
    }
    #expect(waits == [.seconds(10), .seconds(20), .seconds(30), .seconds(30)])
    schedule.begin()
    schedule.done()
    schedule.arm(at: .zero)
    #expect(schedule.dueAt == .seconds(5))
  }
}
