/// The words of the demo community.
enum DemoText {
  static let people: [(name: String, about: String)] = [
    ("Ada", "keeps the relay running"), ("Bruno", "bakes on Fridays"),
    ("Chiara", "draws maps"), ("Dmitri", "repairs bicycles"), ("Elif", "reads old logs"),
    ("Farid", "plays the oud"), ("Greta", "counts birds"), ("Hiro", "writes small programs"),
    ("Inês", "swims in winter"), ("Jonas", "grows tomatoes"), ("Kavya", "collects stamps"),
    ("Lumi", "photographs ice"),
  ]

  static let channels: [(id: String, name: String, about: String)] = [
    ("general", "General", "Whatever everyone should know"),
    ("garden", "Garden", "Seeds, soil and weather"),
    ("workshop", "Workshop", "Things taken apart, and some put together again"),
    ("kitchen", "Kitchen", "Recipes, tried ones"),
    ("maps", "Maps", "Where things are"),
    ("notices", "Notices", "Dates and decisions; members write, everyone reads"),
  ]

  static let openings = [
    "Has anyone seen", "I finally fixed", "Tomorrow we could look at", "Does somebody know",
    "Here is what I found out about", "Please do not forget", "I am still thinking about",
    "Good news about", "A question about", "It took me all day to understand",
  ]

  static let things = [
    "the old bicycle pump", "the tomato seedlings", "the east path", "the sourdough starter",
    "the printer in the hall", "the tide tables", "the broken lamp", "the spare key",
    "the bird count", "the new map sheets", "the water butt", "the soup pot",
    "naïve café signs ☕", "the 日本 postcards", "the rain gauge", "the workshop calendar",
  ]

  static let endings = [
    "", ".", "?", ", if you have time.", " — more on Friday.", ". Pictures follow.",
    ", and it works now.", "; I wrote it down.", " 🌱", ".\nSecond line: bring gloves.",
  ]

  static let replies = [
    "Yes, I have it.", "I can help on Saturday.", "No idea, sorry.", "Thank you!", "Same here.",
    "Look behind the shelf.", "That was me, I will bring it back.", "Agreed.", "Why not both?",
    "Let us ask Greta.",
  ]

  static let emoji = ["+", "👍", "❤️", "😂", "🌱", "🔥", "👀"]
}
