import NostrCrypto

/// I9: no secret leaves the place where it is kept: not in the log, not in the cache, not in a frame
/// and not in the trace.
package struct SecretChecker {
  private let needles: [[UInt8]]

  /// - Parameter names: Of the people whose keys are in use.
  package init(people names: [String]) {
    needles = names.flatMap { name -> [[UInt8]] in
      let bytes = SimulationKeys.secretBytes("person \(name)")
      let hex = bytes.map { byte -> String in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
      }.joined()
      return [bytes, Array(hex.utf8)]
    }
  }

  package func look(at device: Device) {
    guard let life = device.life, !life.disk.isDead else { return }
    for needle in needles {
      device.world.check(
        !life.disk.contains(needle), "\(device.name) has a secret key in its log")
    }
    let folder = life.folder + "/cache"
    for name in ScratchFolder.names(in: folder) {
      let bytes = ScratchFolder.read("\(folder)/\(name)") ?? []
      device.world.check(!isFound(in: bytes), "\(device.name) has a secret key in its cache")
    }
  }

  package func isFound(in bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { all in needles.contains { VirtualDisk.contains($0, in: all) } }
  }
}
