import EventLog
import HotCache
import Nostr
import NostrCrypto
import SyncCore
package import SyncEngine

/// One run of the program on a device, from its start to its end or crash.
///
/// A crash cannot take actors out of their process, so it takes the process away from them: the disk
/// is gone, the network is gone, and they are told to stop. What they still do nobody sees.
package final class DeviceLife: @unchecked Sendable {
  // Unchecked: as for the world it is in.
  package let number: Int
  package let disk: VirtualDisk
  package let folder: String
  package internal(set) var store: CommunityStore?
  package internal(set) var engine: Engine?
  package internal(set) var isDead = false
  /// Why it never came up, where it did not.
  package internal(set) var failure: String?
  let network: SimulatedNetwork
  let ports: Ports
  let executors: StoreExecutors
  let desk: LaneExecutor

  init(
    number: Int, disk: VirtualDisk, folder: String, network: SimulatedNetwork, ports: Ports,
    executors: StoreExecutors, desk: LaneExecutor
  ) {
    self.number = number
    self.disk = disk
    self.folder = folder
    self.network = network
    self.ports = ports
    self.executors = executors
    self.desk = desk
  }

  /// What an error says, without the folder, whose name is another in every process.
  func told(_ error: any Error) -> String {
    "\(error)".split(separator: folder, omittingEmptySubsequences: false).joined(separator: "home")
  }

  /// Ends what still runs and lets the files go.
  func finish() async {
    isDead = true
    network.cutOff()
    await engine?.stop()
    await store?.close()
    engine = nil
    store = nil
    VirtualFileSystem.unmount(folder)
    ScratchFolder.remove(folder)
  }
}
