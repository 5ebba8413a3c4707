import CSQLite
import RelayServer
import SimulationKit
import Testing

/// The disk of a simulated computer, through SQLite itself.
@Suite struct VirtualDiskTests {
  private func remains(
    _ seed: UInt64, synchronous: String, _ end: (VirtualDisk) -> [String: [UInt8]]
  ) throws -> Int {
    let disk = VirtualDisk(seed: seed)
    var contents: [String: [UInt8]] = [:]
    let code = try DiskProbe.insert(disk, rows: 30, synchronous: synchronous) {
      contents = end(disk)
    }
    #expect(code == SQLITE_OK)
    return try DiskProbe.rows(VirtualDisk(seed: seed, contents: contents))
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `what was synced survives a power cut`(seed: UInt64) throws {
    #expect(try remains(seed, synchronous: "FULL") { $0.cutPower() } == 30)
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `what was not synced may be lost, but never out of order`(seed: UInt64) throws {
    #expect((0...30).contains(try remains(seed, synchronous: "NORMAL") { $0.cutPower() }))
  }

  @Test func `a power cut loses something at some seed, and a kill nothing`() throws {
    var kept: Set<Int> = []
    for seed: UInt64 in 1...40 {
      kept.insert(try remains(seed, synchronous: "NORMAL") { $0.cutPower() })
      #expect(try remains(seed, synchronous: "NORMAL") { $0.kill() } == 30)
    }
    #expect(kept.count > 3 && kept.min() ?? 30 < 30)
  }

  @Test func `a full disk says so, and takes more once it has room`() throws {
    let disk = VirtualDisk(seed: 1)
    #expect(try DiskProbe.insert(disk, rows: 1, synchronous: "FULL") == SQLITE_OK)
    disk.setRoom(100)
    #expect(try DiskProbe.insert(disk, rows: 50, synchronous: "FULL") == SQLITE_FULL)
    disk.setRoom(nil)
    #expect(try DiskProbe.insert(disk, rows: 50, synchronous: "FULL") == SQLITE_OK)
  }

  @Test func `a sync that fails is told`() throws {
    let disk = VirtualDisk(seed: 1)
    #expect(try DiskProbe.insert(disk, rows: 1, synchronous: "FULL") == SQLITE_OK)
    disk.failsSyncs = true
    #expect(try DiskProbe.insert(disk, rows: 1, synchronous: "FULL") & 0xff == SQLITE_IOERR)
  }

  @Test func `a disk whose program is gone fails everything`() throws {
    let disk = VirtualDisk(seed: 1)
    #expect(try DiskProbe.insert(disk, rows: 1, synchronous: "FULL") == SQLITE_OK)
    _ = disk.kill()
    #expect(throws: DiskProbe.Failure.self) { try DiskProbe.rows(disk) }
  }
}
