import EventLog
public import Nostr
import NostrCrypto

/// Which community an address means.
///
/// A community is one relay, and a relay is one address: another path or scheme at the same host and
/// port is another relay, which must never be answered for by the first.
extension Home {
  /// The community of a relay: the one whose home it is, else the one of which it is a replica, else
  /// one that is yet to be made, whose name no other relay has.
  ///
  /// - Parameter includesReplicas: Off, only a home counts.
  public func community(of relay: RelayURL, includesReplicas: Bool = true) -> CommunityName {
    let usual = CommunityName(relay)
    // Nearly always: then no other community has to be looked into.
    if relays(of: usual)?.first == relay { return usual }
    let known = communities()
    let all = known.map { (name: $0, relays: relays(of: $0)) }
    if let own = all.first(where: { $0.relays?.first == relay }) { return own.name }
    if includesReplicas, let copied = all.first(where: { $0.relays?.contains(relay) == true }) {
      return copied.name
    }
    guard let holder = all.first(where: { $0.name == usual }) else { return usual }
    // One that names no relay yet takes this one; what cannot be read says so when it is opened.
    guard let others = holder.relays, !others.isEmpty else { return usual }
    return CommunityName(relay, withScheme: true)
  }

  /// The relays of a community; nil where they cannot be read.
  private func relays(of community: CommunityName) -> [RelayURL]? {
    var options = LogOptions()
    options.isMissingEmpty = true
    let path = folder(of: community) + "/" + CommunityStore.logName
    // Whoever opens the community says why it cannot be read.
    guard let reader = try? LogReader.open(path: path, options: options) else { return nil }
    defer { reader.close() }
    return (try? CommunitySettings(reader))?.relays
  }
}

extension CommunityName {
  /// What stands for a path in the name of a folder: letters that have no other case and cannot end
  /// the name of a host, so that no two paths are spelled alike.
  static func spelled(_ path: String) -> String {
    var spelling = ""
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "/"): spelling += "+"
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        spelling.unicodeScalars.append(Unicode.Scalar(byte))
      default: spelling += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return spelling
  }

  /// Names of folders and of key files end at 255 bytes.
  static func cut(_ name: String) -> String {
    guard name.utf8.count > bytesMax else { return name }
    return String(name.prefix(prefixMax)) + "~" + SHA256.hash(Array(name.utf8)).hex
  }

  private static let bytesMax = 240
  private static let prefixMax = 160
}
