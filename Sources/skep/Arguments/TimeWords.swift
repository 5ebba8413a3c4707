import Nostr

/// How durations and times are written on a command line.
enum TimeWords {
  /// `30s`, `5m`, `2h`, `7d`, or bare seconds.
  static func duration(_ word: String) -> Duration? {
    var digits = word[...]
    var unit: Int64 = 1
    if let last = word.last, let seconds = units[last] {
      digits = digits.dropLast()
      unit = seconds
    }
    guard isDigits(digits), let count = Int64(digits) else { return nil }
    let (total, overflow) = count.multipliedReportingOverflow(by: unit)
    return overflow ? nil : .seconds(total)
  }

  private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]

  /// Unix seconds, or RFC 3339 such as `2026-01-31T12:00:00Z`, or a bare date in UTC.
  static func time(_ word: String) -> Timestamp? {
    if isDigits(word[...]) { return Int64(word).map { Timestamp($0) } }
    let bytes = Array(word.utf8)
    guard bytes.count >= 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
      let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
      let day = number(bytes[8..<10]), (1...12).contains(month),
      (1...daysOf(month: month, year: year)).contains(day)
    else { return nil }
    let midnight = days(year: year, month: month, day: day) * 86_400
    guard bytes.count > 10 else { return Timestamp(midnight) }
    guard let seconds = timeOfDay(bytes[10...]), midnight + seconds >= 0 else { return nil }
    return Timestamp(midnight + seconds)
  }

  /// Seconds after midnight in UTC of `T12:00:00Z` and its relatives.
  private static func timeOfDay(_ bytes: ArraySlice<UInt8>) -> Int64? {
    let bytes = Array(bytes)
    guard bytes.count >= 10, "Tt ".utf8.contains(bytes[0]), bytes[3] == UInt8(ascii: ":"),
      bytes[6] == UInt8(ascii: ":"), let hour = number(bytes[1..<3]),
      let minute = number(bytes[4..<6]), let second = number(bytes[7..<9]), hour < 24,
      minute < 60, second <= 60
    else { return nil }
    var rest = bytes[9...]
    if rest.first == UInt8(ascii: ".") {
      let fraction = rest.dropFirst().prefix { $0 >= 0x30 && $0 <= 0x39 }
      guard !fraction.isEmpty else { return nil }
      rest = rest.dropFirst(1 + fraction.count)
    }
    guard let offset = zone(Array(rest)) else { return nil }
    return hour * 3600 + minute * 60 + second - offset
  }

  private static func zone(_ bytes: [UInt8]) -> Int64? {
    if bytes == [UInt8(ascii: "Z")] || bytes == [UInt8(ascii: "z")] { return 0 }
    guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let hour = number(bytes[1..<3]),
      let minute = number(bytes[4..<6]), hour < 24, minute < 60
    else { return nil }
    switch bytes[0] {
    case UInt8(ascii: "+"): return hour * 3600 + minute * 60
    case UInt8(ascii: "-"): return -(hour * 3600 + minute * 60)
    default: return nil
    }
  }

  /// RFC 3339 in UTC; a time beyond year 9999 is written as its number.
  static func rfc3339(_ time: Timestamp) -> String {
    guard (-62_135_596_800...253_402_300_799).contains(time.seconds) else {
      return String(time.seconds)
    }
    let date = civil(time)
    let clock = time.seconds - date.days * 86_400
    return
      "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T"
      + "\(padded(clock / 3600, 2)):\(padded(clock / 60 % 60, 2)):\(padded(clock % 60, 2))Z"
  }

  /// The proleptic Gregorian date in UTC, and its count of days since 1970.
  static func civil(_ time: Timestamp) -> (year: Int64, month: Int64, day: Int64, days: Int64) {
    let days = time.seconds >= 0 ? time.seconds / 86_400 : (time.seconds - 86_399) / 86_400
    // Years begin in March here, so that the leap day is a year's last and months have a formula.
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day, days)
  }

  static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func daysOf(month: Int64, year: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
    let text = String(decoding: bytes, as: UTF8.self)
    return isDigits(text[...]) ? Int64(text) : nil
  }

  private static func isDigits(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
  }

  static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
