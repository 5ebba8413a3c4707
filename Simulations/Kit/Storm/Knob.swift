/// Everything that a storm can be told: how large its world is, and each fault with its strength.
///
/// A storm is nothing but such numbers, so that a failing one can be written down, made smaller and
/// kept. Zero is calm, or what an ordinary relay does.
package enum Knob: String, CaseIterable, Sendable, Comparable {
  // The world.
  case minutes, devices, people, relays, groups, history, writes, others
  // Relays.
  case pageMax = "page-max"
  case negentropy, authentication, buzz
  case dateWindow = "date-window"
  // Lines.
  case latency = "latency-ms"
  case jitter = "jitter-ms"
  case cutEvery = "cut-every"
  case silentPercent = "silent-percent"
  case oneWayPercent = "one-way-percent"
  case stallEvery = "stall-every"
  case stallMax = "stall-max"
  case refusedPercent = "refused-percent"
  case bytesPerSecond = "bytes-per-second"
  // What relays do.
  case relayRestartEvery = "relay-restart-every"
  case relayDownMax = "relay-down-max"
  case relayForgetsPercent = "relay-forgets-percent"
  case troubleEvery = "trouble-every"
  case troubleMax = "trouble-max"
  case troubles
  case lateEvery = "late-every"
  case deletionPercent = "deletion-percent"
  case versionPercent = "version-percent"
  case densePercent = "dense-percent"
  case replicaLag = "replica-lag"
  // What befalls computers.
  case crashEvery = "crash-every"
  case downMax = "down-max"
  case powerPercent = "power-percent"
  case cutInWritePercent = "cut-in-write-percent"
  case cacheDamagePercent = "cache-damage-percent"
  case cacheMapKibibytes = "cache-map-kib"
  case diskFullEvery = "disk-full-every"
  case diskFaultMax = "disk-fault-max"
  case syncFailEvery = "sync-fail-every"
  case diskDelay = "disk-delay-ms"
  case clockSkewMax = "clock-skew-max"
  case clockJumpEvery = "clock-jump-every"
  case clockRatePercent = "clock-rate-percent"
  // What people do.
  case offlineEvery = "offline-every"
  case offlineMax = "offline-max"
  case replyPercent = "reply-percent"

  /// The value in a calm world.
  package var calm: Int {
    switch self {
    case .minutes: 30
    case .devices: 2
    case .people: 2
    case .relays, .groups: 1
    case .pageMax: 500
    case .latency: 20
    case .jitter: 20
    case .relayDownMax, .downMax, .troubleMax, .offlineMax, .diskFaultMax, .stallMax: 30
    default: 0
    }
  }

  /// The largest value that a world takes.
  package var valueMax: Int {
    switch self {
    case .minutes: 24 * 60
    case .devices, .people: 20
    case .relays: 8
    case .groups: 1000
    case .history, .writes, .others: 100_000
    case .silentPercent, .oneWayPercent, .refusedPercent, .relayForgetsPercent, .deletionPercent,
      .densePercent, .versionPercent, .powerPercent, .cutInWritePercent, .cacheDamagePercent,
      .replyPercent:
      100
    case .negentropy: 7
    case .authentication: 2
    case .buzz: 1
    case .clockRatePercent: 20
    case .troubles: (1 << Trouble.allCases.count) - 1
    default: 100_000_000
    }
  }

  /// Whether it stands for a fault, not for the world in which faults happen.
  package var isFault: Bool {
    switch self {
    case .minutes, .devices, .people, .relays, .groups, .history, .writes, .others, .pageMax,
      .negentropy, .authentication, .buzz, .latency, .jitter, .dateWindow, .relayDownMax,
      .downMax, .troubleMax, .offlineMax, .diskFaultMax, .stallMax, .replyPercent,
      .troubles:
      false
    default: true
    }
  }

  package static func < (left: Knob, right: Knob) -> Bool { left.rawValue < right.rawValue }
}

/// One world of a storm, as numbers.
package struct Recipe: Sendable, Hashable {
  private var values: [Knob: Int] = [:]

  package init() {}

  package subscript(knob: Knob) -> Int {
    get { values[knob] ?? knob.calm }
    set { values[knob] = newValue == knob.calm ? nil : min(max(0, newValue), knob.valueMax) }
  }

  /// What differs from a calm world, sorted.
  package var changes: [(knob: Knob, value: Int)] {
    values.sorted { $0.key < $1.key }.map { (knob: $0.key, value: $0.value) }
  }

  /// Whether nothing is to go wrong.
  var isCalm: Bool { !values.keys.contains { $0.isFault } }

  func seconds(_ knob: Knob) -> Duration? {
    self[knob] > 0 ? .seconds(self[knob]) : nil
  }
}
