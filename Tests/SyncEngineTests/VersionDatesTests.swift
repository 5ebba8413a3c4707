import Nostr
import NostrCrypto
import Testing

@testable import SyncEngine

@Suite struct VersionDatesTests {
  @Test func `only the slots written last are remembered, and writing again counts`() {
    let author = SecretKey.generate().publicKey
    func slot(_ number: Int) -> EventAddress {
      EventAddress(kind: 30078, author: author, identifier: Text("\(number)"))
    }
    var dates = VersionDates(countMax: 3)
    for number in 1...3 { dates.note(Timestamp(Int64(number)), for: slot(number)) }
    dates.note(10, for: slot(1))
    dates.note(4, for: slot(4))
    #expect(dates[slot(1)] == 10)
    #expect(dates[slot(2)] == nil)
    #expect(dates[slot(3)] == 3 && dates[slot(4)] == 4)
  }
}
