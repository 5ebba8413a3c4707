import RelayServer

/// One connection between a client and a relay: frames keep their order, take time, and are lost
/// when the line is cut.
final class SimulatedLink {
  /// The client's end.
  struct Ends {
    let received: ([UInt8]) -> Void
    let ponged: () -> Void
    let ended: (String) -> Void
  }

  private let world: World
  private let relay: SimulatedRelay
  private let name: String
  private let ends: Ends
  private let plan: () -> FaultPlan
  private var random: SplitMix64
  private var id: ConnectionID?
  private var isAlive = true
  var isOpen: Bool { isAlive }
  /// Each direction delivers in order.
  private var lastUp = Duration.zero
  private var lastDown = Duration.zero
  private var stalledUntil = Duration.zero
  /// Set where frames of one direction are lost without anybody being told.
  private var isDeafUp = false
  private var isDeafDown = false
  /// Bytes handed over that the relay has not received yet.
  private(set) var bytesUnderway = 0
  /// Is told when there are fewer of them.
  var onProgress: (() -> Void)?

  init(
    _ name: String, to relay: SimulatedRelay, in world: World, plan: @escaping () -> FaultPlan,
    ends: Ends
  ) {
    self.world = world
    self.relay = relay
    self.name = name
    self.ends = ends
    self.plan = plan
    random = world.generator("link \(name)")
  }

  /// Reaches the relay, which begins to send at once.
  func open() {
    id = relay.connect(self)
    scheduleCut()
    scheduleStall()
  }

  func sendUp(_ frame: [UInt8]) {
    world.onFrame?(name, frame)
    bytesUnderway += frame.count
    deliver(&lastUp, bytes: frame.count) { link in
      link.bytesUnderway -= frame.count
      link.onProgress?()
      guard !link.isDeafUp, let id = link.id else { return }
      link.world.note("\(link.name) > \(SimulatedLink.summary(of: frame))")
      link.relay.receive(frame, from: id)
    }
  }

  func sendDown(_ frame: [UInt8]) {
    deliver(&lastDown, bytes: frame.count) { link in
      guard !link.isDeafDown else { return }
      link.world.note("\(link.name) < \(SimulatedLink.summary(of: frame))")
      link.ends.received(frame)
    }
  }

  func ping() {
    deliver(&lastUp) { link in
      guard !link.isDeafUp else { return }
      link.deliver(&link.lastDown) { if !$0.isDeafDown { $0.ends.ponged() } }
    }
  }

  /// The client lets go.
  func closeFromClient() {
    guard isAlive else { return }
    isAlive = false
    tellRelay()
  }

  /// The relay lets go; what it sent before still arrives.
  func closeFromRelay() {
    id = nil
    deliver(&lastDown) { link in
      link.isAlive = false
      link.world.note("\(link.name) closed by the relay")
      link.ends.ended("closed by the relay")
    }
  }

  /// The line breaks; frames on their way are lost.
  ///
  /// - Parameter isSilent: The client is not told, as when a router forgets a connection.
  func cut(isSilent: Bool) {
    guard isAlive else { return }
    isAlive = false
    world.note("\(name) cut\(isSilent ? " in silence" : "")")
    tellRelay()
    onProgress?()
    if !isSilent { ends.ended("the connection was lost") }
  }

  /// One direction loses everything from now on, and nobody is told.
  private func deafen() {
    isDeafUp = random.chance(50)
    isDeafDown = !isDeafUp
    world.note("\(name) is deaf \(isDeafUp ? "up" : "down")")
  }

  private func tellRelay() {
    guard let id else { return }
    self.id = nil
    let relay = relay
    world.after(plan().latency) { relay.disconnected(id) }
  }

  // MARK: Time and faults

  private func deliver(
    _ last: inout Duration, bytes: Int = 0, _ run: @escaping (SimulatedLink) -> Void
  ) {
    guard isAlive else { return }
    let plan = plan()
    let jitter = plan.jitter * random.fraction()
    let length = plan.bytesPerSecond.map { Duration.seconds(Double(bytes) / Double($0)) } ?? .zero
    // What is sent waits for what was sent before, and takes the line for its own length.
    last = max(max(last, stalledUntil) + length, world.now + plan.latency + jitter + length)
    world.after(last - world.now) { [weak self] in
      guard let self, self.isAlive else { return }
      run(self)
    }
  }

  private func scheduleCut() {
    guard let mean = plan().cutEvery else { return }
    world.after(delay(around: mean)) { [weak self] in
      guard let self, self.isAlive, self.plan().cutEvery != nil else { return }
      if self.random.chance(self.plan().oneWayPercent) {
        self.world.count(fault: "one-way-cut")
        return self.deafen()
      }
      let isSilent = self.random.chance(self.plan().silentPercent)
      self.world.count(fault: isSilent ? "silent-cut" : "cut")
      self.cut(isSilent: isSilent)
    }
  }

  private func scheduleStall() {
    guard let mean = plan().stallEvery else { return }
    world.after(delay(around: mean)) { [weak self] in
      guard let self, self.isAlive, self.plan().stallEvery != nil else { return }
      self.world.count(fault: "stall")
      let length = self.plan().stallMax * self.random.fraction()
      self.stalledUntil = self.world.now + length
      self.world.note("\(self.name) stalls")
      self.scheduleStall()
    }
  }

  private func delay(around mean: Duration) -> Duration {
    mean * (2 * random.fraction())
  }

  private static func summary(of frame: [UInt8]) -> String {
    String(decoding: frame.prefix(120), as: UTF8.self)
      + (frame.count > 120 ? "… \(frame.count)" : "")
  }
}
