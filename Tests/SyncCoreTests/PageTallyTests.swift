import Nostr
import SyncCore
import Testing

@Suite struct PageTallyTests {
  /// More than are kept one by one.
  private static let many = 70_000

  @Test(arguments: [false, true])
  func `of doubts beyond what is kept the last stands for all that follow`(isDated: Bool) {
    var tally = PageTally()
    tally.addVerified(ModelRelay.position(100, 1))
    for number in 0..<Self.many {
      if isDated {
        tally.addInvalid(ModelRelay.position(90, 1000 + number), isDated: true)
      } else {
        tally.addUnreadable()
      }
    }
    tally.addVerified(ModelRelay.position(50, 2))
    tally.addUnreadable()
    tally.addVerified(ModelRelay.position(20, 3))
    let doubts = tally.doubts
    #expect(doubts.count < Self.many)
    #expect(doubts.first?.oldest == (isDated ? 90 : 50))
    // From the first that was not kept down to the last of all.
    #expect(doubts.last?.newest == 100 && doubts.last?.oldest == 20 && doubts.last?.id == nil)
  }

  @Test func `each of a few doubts has a span of its own`() {
    var tally = PageTally()
    tally.addVerified(ModelRelay.position(100, 1))
    tally.addUnreadable()
    tally.addVerified(ModelRelay.position(50, 2))
    tally.addUnreadable()
    #expect(tally.doubts.map(\.newest) == [100, 50] && tally.doubts.map(\.oldest) == [50, nil])
  }
}
