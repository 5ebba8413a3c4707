import Nostr
import RelayServer
import SyncCore

/// The way from one life of one device to the relays of its world.
final class SimulatedNetwork: Transport, RelayInformationFetcher, @unchecked Sendable {
  // Unchecked: as for the world it is in.
  private let world: World
  private let name: String
  private let relays: [RelayURL: SimulatedRelay]
  private let plan: () -> FaultPlan
  private var random: SplitMix64
  private var linkCount = 0
  /// Kept for as long as they are open, because a link is held by nobody else.
  private var links: [SimulatedLink] = []
  private var sockets: [SimulatedSocket] = []
  private(set) var isCut = false
  /// When this life tried to connect, by relay.
  private(set) var attempts: [RelayURL: [Duration]] = [:]

  init(
    _ name: String, to relays: [SimulatedRelay], in world: World, plan: @escaping () -> FaultPlan
  ) {
    self.world = world
    self.name = name
    self.plan = plan
    self.relays = Dictionary(uniqueKeysWithValues: relays.map { ($0.url, $0) })
    random = world.generator("network of \(name)")
  }

  /// The computer is gone: nothing leaves it and nothing reaches it any more.
  func cutOff() {
    isCut = true
    for link in links { link.closeFromClient() }
    for socket in sockets { socket.ended(.cancelled) }
    links = []
    sockets = []
  }

  func open(
    _ url: RelayURL, frameBytesMax: Int
  ) async throws(TransportError) -> any TransportLink {
    guard !isCut, let relay = relays[url] else { throw .nameNotFound(host: url.host) }
    attempts[url, default: []].append(world.now)
    try await pause(2)
    let plan = plan()
    let isRefused = random.chance(plan.refusedPercent)
    guard !isCut, relay.isUp, !isRefused else {
      if isRefused { world.count(fault: "refused-connection") }
      throw .refused(isRefused ? "the line is bad" : "nobody listens")
    }
    return connect(to: relay, frameBytesMax: frameBytesMax)
  }

  private func connect(to relay: SimulatedRelay, frameBytesMax: Int) -> SimulatedSocket {
    linkCount += 1
    let socket = SimulatedSocket(frameBytesMax: frameBytesMax)
    let code = random.element(of: [1000, 1001, 1006, 1011, 1012, 1013] as [UInt16])
    let link = SimulatedLink(
      "\(name)-\(relay.name)-\(linkCount)", to: relay, in: world, plan: plan,
      ends: SimulatedLink.Ends(
        received: { [weak socket] in socket?.received($0) },
        ponged: { [weak socket] in socket?.ponged() },
        ended: { [weak socket] in socket?.ended(.closed(code: code, reason: $0)) }))
    socket.attach(link)
    links.removeAll { !$0.isOpen }
    sockets.removeAll { $0.isOver }
    links.append(link)
    sockets.append(socket)
    link.open()
    return socket
  }

  /// How many connections of this life are open at a relay.
  var openCount: Int { links.count { $0.isOpen } }

  var framesWaitingMax: Int { sockets.map(\.framesWaiting).max() ?? 0 }

  func answer(of url: RelayURL) async throws(TransportError) -> RelayAnswer {
    let relay = try await reach(url)
    return RelayAnswer(document: relay.document, date: relay.wall)
  }

  func document(of url: RelayURL) async throws(TransportError) -> [UInt8] {
    try await reach(url).document
  }

  private func reach(_ url: RelayURL) async throws(TransportError) -> SimulatedRelay {
    try await pause(3)
    guard !isCut, let relay = relays[url], relay.isUp, !random.chance(plan().refusedPercent) else {
      throw .refused("nobody listens")
    }
    return relay
  }

  /// The time of so many ways over the line.
  private func pause(_ ways: Int) async throws(TransportError) {
    let plan = plan()
    let time = (plan.latency + plan.jitter * random.fraction()) * ways
    do {
      try await world.sleep(until: world.now + time)
    } catch {
      throw .cancelled
    }
  }
}
