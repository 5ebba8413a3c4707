package import SimulationKit

extension Recipe {
  /// The world of most scenarios: an hour, two devices of two people, a relay and some hundred
  /// events.
  package static var standing: Recipe {
    var recipe = Recipe()
    recipe[.minutes] = 60
    recipe[.groups] = 2
    recipe[.history] = 400
    recipe[.writes] = 60
    recipe[.others] = 120
    recipe[.replyPercent] = 20
    return recipe
  }
}
