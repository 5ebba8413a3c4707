package import RelayServer
package import SimulationKit

/// Any faults at all, at any strength: each seed draws which there are and how strong they are.
///
/// Its world is the standard one: two virtual hours, three devices of two people, two relays and two
/// thousand events.
package struct Swarm: StormScenario {
  package init() {}

  package var name: String { "swarm" }
  package var summary: String {
    "any subset of all faults, at any strength, in a world of a fixed size"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe()
    recipe[.minutes] = 120
    recipe[.devices] = 3
    recipe[.people] = 2
    recipe[.relays] = 2
    recipe[.groups] = 2
    recipe[.history] = 1500
    recipe[.others] = 350
    recipe[.writes] = 150
    recipe[.replyPercent] = 20
    Swarm.drawRelays(&recipe, &random)
    Swarm.drawLines(&recipe, &random)
    Swarm.drawComputers(&recipe, &random)
    return recipe
  }

  /// Draws a value for a fault that is there so many times out of a hundred.
  private static func draw(
    _ knob: Knob, _ percent: Int, _ values: Range<Int>, _ recipe: inout Recipe,
    _ random: inout SplitMix64
  ) {
    let value = random.number(in: values)
    if random.chance(percent) { recipe[knob] = value }
  }

  private static func drawRelays(_ recipe: inout Recipe, _ random: inout SplitMix64) {
    recipe[.pageMax] = random.chance(50) ? 500 : random.number(in: 20..<300)
    recipe[.authentication] = random.number(in: 0..<3)
    draw(.buzz, 20, 1..<2, &recipe, &random)
    draw(.negentropy, 70, 1..<8, &recipe, &random)
    draw(.dateWindow, 30, 600..<1800, &recipe, &random)
    draw(.relayRestartEvery, 50, 300..<3000, &recipe, &random)
    draw(.relayDownMax, 50, 1..<600, &recipe, &random)
    draw(.relayForgetsPercent, 20, 1..<100, &recipe, &random)
    draw(.troubleEvery, 60, 60..<1200, &recipe, &random)
    draw(.troubleMax, 100, 10..<600, &recipe, &random)
    recipe[.troubles] = Trouble.honestBits & Int(random.next() >> 40)
    draw(.lateEvery, 50, 60..<1200, &recipe, &random)
    draw(.deletionPercent, 40, 1..<30, &recipe, &random)
    draw(.versionPercent, 40, 1..<30, &recipe, &random)
    draw(.replicaLag, 50, 1..<300, &recipe, &random)
  }

  private static func drawLines(_ recipe: inout Recipe, _ random: inout SplitMix64) {
    recipe[.latency] = random.number(in: 1..<300)
    recipe[.jitter] = random.number(in: 1..<500)
    draw(.cutEvery, 70, 20..<1200, &recipe, &random)
    draw(.silentPercent, 50, 1..<80, &recipe, &random)
    draw(.oneWayPercent, 30, 1..<50, &recipe, &random)
    draw(.stallEvery, 50, 30..<600, &recipe, &random)
    draw(.stallMax, 100, 1..<60, &recipe, &random)
    draw(.refusedPercent, 40, 1..<60, &recipe, &random)
    draw(.bytesPerSecond, 20, 20_000..<1_000_000, &recipe, &random)
  }

  private static func drawComputers(_ recipe: inout Recipe, _ random: inout SplitMix64) {
    draw(.crashEvery, 50, 300..<3600, &recipe, &random)
    draw(.downMax, 50, 1..<600, &recipe, &random)
    draw(.powerPercent, 60, 1..<100, &recipe, &random)
    draw(.cutInWritePercent, 50, 1..<100, &recipe, &random)
    draw(.cacheDamagePercent, 30, 1..<100, &recipe, &random)
    draw(.cacheMapKibibytes, 10, 100..<2000, &recipe, &random)
    draw(.diskFullEvery, 15, 600..<5000, &recipe, &random)
    draw(.syncFailEvery, 15, 600..<5000, &recipe, &random)
    draw(.diskFaultMax, 100, 1..<120, &recipe, &random)
    draw(.diskDelay, 30, 1..<50, &recipe, &random)
    draw(.clockSkewMax, 25, 1..<3000, &recipe, &random)
    draw(.clockJumpEvery, 25, 300..<3600, &recipe, &random)
    draw(.clockRatePercent, 20, 1..<10, &recipe, &random)
    draw(.offlineEvery, 30, 300..<3000, &recipe, &random)
    draw(.offlineMax, 100, 1..<900, &recipe, &random)
  }
}
