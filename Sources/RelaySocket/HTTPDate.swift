import Glibc
package import Nostr

/// The form in which HTTP writes times: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
package enum HTTPDate {
  private static let form = "%a, %d %b %Y %H:%M:%S GMT"

  package static func text(_ time: Timestamp) -> String {
    var seconds = time_t(time.seconds)
    var parts = tm()
    guard gmtime_r(&seconds, &parts) != nil else { return "" }
    var buffer = [CChar](repeating: 0, count: 64)
    let count = strftime(&buffer, buffer.count, form, &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Nil for anything else, the two forms that RFC 9110 calls obsolete among it.
  package static func time(_ text: String) -> Timestamp? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = number(words[1], in: 1...31),
      let month = months.firstIndex(where: { $0 == words[2] }),
      let year = number(words[3], in: 1970...9999)
    else { return nil }
    let clock = words[4].split(separator: ":")
    guard clock.count == 3, let hour = number(clock[0], in: 0...23),
      let minute = number(clock[1], in: 0...59), let second = number(clock[2], in: 0...60)
    else { return nil }
    var parts = tm()
    (parts.tm_mday, parts.tm_mon, parts.tm_year) = (day, Int32(month), year - 1900)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
    return Timestamp(Int64(timegm(&parts)))
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private static func number(_ digits: Substring, in range: ClosedRange<Int32>) -> Int32? {
    guard let number = Int32(digits), range.contains(number) else { return nil }
    return number
  }
}
