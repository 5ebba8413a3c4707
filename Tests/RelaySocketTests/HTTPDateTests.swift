import Nostr
import Testing

@testable import RelaySocket

@Suite struct HTTPDateTests {
  @Test(arguments: [
    (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
    (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
  ])
  func `a time is written as HTTP writes it, and read back`(seconds: Int, text: String) {
    #expect(HTTPDate.text(Timestamp(Int64(seconds))) == text)
    #expect(HTTPDate.time(text) == Timestamp(Int64(seconds)))
  }

  @Test(arguments: [
    "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 32 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT x",
  ])
  func `anything else is no time`(text: String) {
    #expect(HTTPDate.time(text) == nil)
  }
}
