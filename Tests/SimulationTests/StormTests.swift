import Nostr
import RelayServer
import SimulationKit
import SimulationScenarios
import Testing

/// Storms: the engine that ships, under everything that a recipe says.
@Suite struct StormTests {
  private static let storms = Scenarios.all.compactMap { $0 as? any StormScenario }.map(\.name)

  private func storm(_ name: String) throws -> any StormScenario {
    try #require(Scenarios.named(name) as? any StormScenario)
  }

  /// A storm in a world that a test has time for.
  private func small(_ name: String, seed: UInt64) throws -> RecipeFile {
    var recipe = try storm(name).recipe(seed: seed)
    recipe[.minutes] = 5
    recipe[.history] = min(recipe[.history], 100)
    recipe[.others] = 20
    recipe[.writes] = 10
    recipe[.groups] = min(recipe[.groups], 10)
    return RecipeFile(name: name, seed: seed, recipe: recipe)
  }

  @Test(arguments: storms)
  func `every storm keeps its promises in a small world`(name: String) throws {
    let file = try small(name, seed: 3)
    let run = try Simulator.run(storm: file.text, "--json")
    #expect(run.code == 0, "\(run.talk)\nkeep this and run it:\n\(file.text)")
  }

  @Test func `the same storm gives the same trace, another seed another`() throws {
    let file = try small("swarm", seed: 5)
    let first = try Simulator.run(storm: file.text, "--json")
    #expect(try first.data == Simulator.run(storm: file.text, "--json").data)
    let other = RecipeFile(name: "swarm", seed: 6, recipe: file.recipe)
    let second = try Simulator.run(storm: other.text, "--json")
    #expect(try first.worlds().map(\.traceHash) != second.worlds().map(\.traceHash))
  }

  @Test func `the standard world has its size`() throws {
    for seed: UInt64 in 1...20 {
      let recipe = try storm("swarm").recipe(seed: seed)
      #expect(recipe[.minutes] >= 120 && recipe[.devices] >= 3 && recipe[.relays] >= 2)
      #expect(recipe[.history] + recipe[.others] + recipe[.writes] >= 2000)
    }
  }

  @Test func `the swarm draws each fault at some seed, and at none all of them`() throws {
    let recipes = try (1...200).map { try storm("swarm").recipe(seed: $0) }
    for knob in Knob.allCases where knob.isFault && knob != .densePercent {
      #expect(recipes.contains { $0[knob] != knob.calm }, "\(knob) is never drawn")
      #expect(recipes.contains { $0[knob] == knob.calm }, "\(knob) is always drawn")
    }
  }

  // MARK: Files

  @Test func `a storm that was written down is read as it was`() throws {
    let file = try small("power-loss", seed: 7)
    let again = try RecipeFile("# a remark\n\n" + file.text) { $0 == "power-loss" }
    #expect(again.recipe == file.recipe && again.seed == 7 && again.name == "power-loss")
  }

  @Test(arguments: [
    "", "scenario swarm\n", "seed 1\n", "scenario nothing\nseed 1\n", "scenario swarm\nseed x\n",
    "scenario swarm\nseed 1\nwrites\n", "scenario swarm\nseed 1\nwrites -1\n",
    "scenario swarm\nseed 1\nwrites 1000000\n", "scenario swarm\nseed 1\nwinds 3\n",
    "scenario swarm\nseed 1\nwrites 1\nwrites 2\n", "scenario swarm\nseed 1\nbuzz 2\n",
  ])
  func `a malformed storm is refused`(text: String) {
    #expect(throws: RecipeFile.Malformed.self) { try RecipeFile(text) { $0 == "swarm" } }
  }
}
