import RelayServer

/// What may happen to the files of a cache while nobody has them open.
package enum CacheDamage: String, Sendable, CaseIterable {
  case deleted, truncated, noise, sealLost
  /// The files of an earlier time are put back.
  case older

  func apply(to folder: String, _ random: inout SplitMix64) {
    let data = folder + "/data.mdb"
    switch self {
    case .deleted: ScratchFolder.removeFiles(in: folder)
    case .older: break
    case .sealLost: ScratchFolder.write([], to: folder + "/seal")
    case .truncated:
      guard let bytes = ScratchFolder.read(data), !bytes.isEmpty else { return }
      ScratchFolder.write(Array(bytes[..<random.number(in: 0..<bytes.count)]), to: data)
    case .noise:
      guard var bytes = ScratchFolder.read(data), !bytes.isEmpty else { return }
      for _ in 0..<random.number(in: 1..<200) {
        bytes[random.number(in: 0..<bytes.count)] = UInt8(random.number(in: 0..<256))
      }
      ScratchFolder.write(bytes, to: data)
    }
  }

  /// The cache is never synced while it is in use, so nothing of it survives whole, and its seal
  /// tells of another boot.
  static func afterPowerCut(_ folder: String, _ random: inout SplitMix64) {
    switch random.number(in: 0..<3) {
    case 0: CacheDamage.deleted.apply(to: folder, &random)
    case 1: CacheDamage.truncated.apply(to: folder, &random)
    default: CacheDamage.noise.apply(to: folder, &random)
    }
    ScratchFolder.write([], to: folder + "/seal")
  }
}
