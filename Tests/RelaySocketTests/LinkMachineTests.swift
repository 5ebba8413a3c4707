import SyncCore
import Testing

@testable import RelaySocket

/// The bounds of one connection, stepped without a socket.
@Suite struct LinkMachineTests {
  private func open(_ limits: SocketLimits = .init()) -> LinkMachine {
    LinkMachine(phase: .open, limits: limits)
  }

  @Test func `reading stops at the frame limit and goes on at half of it`() async {
    var limits = SocketLimits()
    limits.inboundFramesMax = 4
    var machine = open(limits)
    let pauses = (0..<4).map { machine.arrived(.message([UInt8($0)])).pause }
    #expect(pauses == [false, false, false, true])
    var resumed: [Bool] = []
    for number in 0..<4 {
      let frame = await receive(&machine)
      #expect(frame == .success(.message([UInt8(number)])))
      resumed.append(machine.takeWants().resumeReading)
    }
    #expect(resumed == [false, true, false, false])
  }

  @Test func `reading stops at the byte limit`() {
    var limits = SocketLimits()
    limits.inboundBytesMax = 1000
    var machine = open(limits)
    #expect(!machine.arrived(.message([UInt8](repeating: 0, count: 500))).pause)
    #expect(machine.arrived(.message([UInt8](repeating: 0, count: 500))).pause)
  }

  @Test func `frames that arrived before the end are handed out before the end`() async {
    var machine = open()
    _ = machine.arrived(.message([1]))
    machine.end(with: .closed(code: 1000, reason: "")).resume()
    #expect(await receive(&machine) == .success(.message([1])))
    #expect(await receive(&machine) == .failure(.closed(code: 1000, reason: "")))
  }

  @Test func `an abandoned connection hands out nothing more and wants to be killed`() async {
    var machine = open()
    _ = machine.arrived(.message([1]))
    let wakeups = machine.abandon()
    #expect(wakeups.needsService)
    #expect(machine.takeWants().kill)
    #expect(await receive(&machine) == .failure(.closed(code: 1006, reason: "abandoned")))
    #expect(!machine.arrived(.message([2])).pause)
    #expect(await receive(&machine) == .failure(.closed(code: 1006, reason: "abandoned")))
  }

  @Test func `whoever waits gets all that came in one round, as far as it was asked for`() async {
    var machine = open()
    let outcome = await wait(&machine, upTo: 2)
    for number in 0..<3 { #expect(machine.arrived(.message([UInt8(number)])).isAwaited) }
    machine.deliver().resume()
    #expect(await outcome.value == .success([.message([0]), .message([1])]))
    #expect(machine.deliver().receiver == nil)
    #expect(await receive(&machine) == .success(.message([2])))
  }

  @Test func `whoever waits at the end gets what had arrived, and then hears of the end`() async {
    var machine = open()
    let outcome = await wait(&machine, upTo: 8)
    _ = machine.arrived(.message([1]))
    machine.end(with: .timedOut).resume()
    #expect(await outcome.value == .success([.message([1])]))
    #expect(await receive(&machine) == .failure(.timedOut))
  }

  @Test func `frames given together leave in order, and the sender hears when the last has left`()
    async
  {
    var machine = open()
    let sender = Answer<LinkMachine.Sender>()
    let outcome = Task { await withCheckedContinuation { sender.give($0) } }
    let ticket = machine.ticket()
    _ = machine.send([.ping, .ping], ticket: ticket, await sender.value(), isCancelled: false)
    for _ in 0..<2 {
      let (wakeups, next) = machine.writable()
      guard case .frame = next else {
        Issue.record("a frame was to leave")
        break
      }
      #expect(wakeups.senders.isEmpty)
    }
    let last = machine.writable()
    #expect(last.wakeups.senders.count == 1)
    last.wakeups.resume()
    guard case .success = await outcome.value else {
      Issue.record("the sender was not told")
      return
    }
  }

  @Test func `a cancelled sender takes back all that has not left`() async {
    var machine = open()
    let sender = Answer<LinkMachine.Sender>()
    let outcome = Task { await withCheckedContinuation { sender.give($0) } }
    let ticket = machine.ticket()
    _ = machine.send(
      [.ping, .ping, .ping], ticket: ticket, await sender.value(), isCancelled: false)
    _ = machine.writable()
    let wakeups = machine.cancelSend(ticket: ticket)
    #expect(wakeups.senders.count == 1)
    wakeups.resume()
    guard case .failure(.cancelled) = await outcome.value else {
      Issue.record("the sender was not told")
      return
    }
    guard case .nothing = machine.writable().next else {
      Issue.record("nothing was left to leave")
      return
    }
  }

  @Test func `the first reason of an end stays`() async {
    var machine = open()
    machine.end(with: .timedOut).resume()
    machine.end(with: .closed(code: 1006, reason: "")).resume()
    #expect(await receive(&machine) == .failure(.timedOut))
  }

  @Test func `one send more than may wait is refused, and the others are not`() async {
    var limits = SocketLimits()
    limits.sendsWaitingMax = 2
    var machine = open(limits)
    var results: [Result<Void, TransportError>?] = []
    for _ in 0..<3 { results.append(await send(&machine)) }
    #expect(results.map { $0 == nil } == [true, true, false])
    guard case .failure(.refused) = results[2] else {
      Issue.record("the third was not refused")
      return
    }
    machine.end(with: .cancelled).resume()
  }

  @Test func `the service thread is rung once until it has looked`() {
    var machine = open()
    #expect(machine.close(code: 1000).needsService)
    #expect(!machine.abandon().needsService)
    _ = machine.takeWants()
    #expect(machine.end(with: .cancelled, isAbandoned: true).needsService)
  }

  @Test func `letting go does not cut a close short, and drops everything else`() {
    var closing = open()
    _ = closing.close(code: 1000)
    _ = closing.letGo()
    #expect(!closing.takeWants().kill)
    var idle = open()
    _ = idle.letGo()
    #expect(idle.takeWants().kill)
  }

  /// A receiver that waits, and what it gets.
  private func wait(
    _ machine: inout LinkMachine, upTo countMax: Int
  ) async -> Task<Result<[InboundFrame], TransportError>, Never> {
    let receiver = Answer<LinkMachine.Receiver>()
    let outcome = Task { await withCheckedContinuation { receiver.give($0) } }
    let wait = LinkMachine.Waiting(
      ticket: machine.ticket(), countMax: countMax, continuation: await receiver.value())
    machine.receive(wait, isCancelled: false).resume()
    return outcome
  }

  /// What a receiver gets that need not wait.
  private func receive(_ machine: inout LinkMachine) async
    -> Result<InboundFrame, TransportError>
  {
    let ticket = machine.ticket()
    return await withCheckedContinuation { continuation in
      let wait = LinkMachine.Waiting(ticket: ticket, countMax: 1, continuation: continuation)
      machine.receive(wait, isCancelled: false).resume()
    }.map { $0[0] }
  }

  /// What a sender gets at once, or nil where it waits.
  private func send(_ machine: inout LinkMachine) async -> Result<Void, TransportError>? {
    let sender = Answer<LinkMachine.Sender>()
    let outcome = Task { await withCheckedContinuation { sender.give($0) } }
    let wakeups = machine.send(
      [.ping], ticket: machine.ticket(), await sender.value(), isCancelled: false)
    wakeups.resume()
    return wakeups.senders.isEmpty ? nil : await outcome.value
  }
}
