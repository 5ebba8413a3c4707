import Nostr
import Platform
import SyncCore
import Testing

@testable import RelaySocket

@Suite struct SystemTests {
  @Test(arguments: [-86_400, 0, 3600] as [Int64])
  func `an offset shifts the wall clock and never the steady one`(offset: Int64) {
    let plain = SystemClock()
    let shifted = SystemClock(offset: offset)
    let difference = shifted.now().seconds - plain.now().seconds
    #expect((offset...offset + 1).contains(difference))
    #expect(shifted.uptime() < .seconds(60))
    #expect(shifted.uptime() >= .zero)
  }

  @Test func `sleep returns at its time, and throws when it is cancelled`() async throws {
    let clock = SystemClock()
    let until = clock.uptime() + .milliseconds(20)
    try await clock.sleep(until: until)
    #expect(clock.uptime() >= until)
    let sleeper = Task { try await clock.sleep(until: .seconds(3600)) }
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
  }

  @Test func `random numbers do not repeat over many blocks`() {
    let random = SystemRandom()
    #expect(Set((0..<1000).map { _ in random.next() }).count == 1000)
  }

  @Test func `a spawned task ends when it is cancelled, and says so`() async {
    let task = SystemTasks().spawn("test") {
      do { try await SystemClock().sleep(until: .seconds(3600)) } catch {}
    }
    task.cancel()
    await task.finished()
  }

  @Test func `a deadline passes on what came in time`() async throws {
    #expect(try await withDeadline(.seconds(60)) { .success(1) } == 1)
    let error = await failure {
      try await withDeadline(.milliseconds(1)) {
        // A stream that nobody feeds ends only by cancellation.
        for await _ in AsyncStream<Void>.makeStream().stream {}
        return .failure(.cancelled)
      }
    }
    #expect(error == .timedOut)
  }

  @Test func `addresses need no lookup, and a name has at least one`() async throws {
    let names = NameLookup()
    #expect(try await names.addresses(of: "192.0.2.7") == ["192.0.2.7"])
    #expect(try await names.addresses(of: "2001:db8::1") == ["2001:db8::1"])
    #expect(try await names.addresses(of: "localhost").isEmpty == false)
  }

  @Test func `a queue gives back in order what it was given, whatever the pattern`() {
    var queue = Fifo<Int>()
    var given = 0
    var taken = 0
    var random = SplitMix(state: 11)
    for _ in 0..<10_000 {
      if random.next() % 3 > 0 {
        queue.append(given)
        given += 1
      } else if let value = queue.popFirst() {
        #expect(value == taken)
        taken += 1
      }
      #expect(queue.count == given - taken)
    }
    #expect(queue.removeAll() == Array(taken..<given))
    #expect(queue.isEmpty)
  }
}
