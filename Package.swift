// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

func system(_ name: String, pkgConfig: String, apt: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func library(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
  .target(name: name, dependencies: dependencies, path: path, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
  name: "skep",
  products: [
    .library(name: "Skep", targets: ["Skep"]),
    .library(name: "SyncEngine", targets: ["SyncEngine"]),
    .library(name: "Nostr", targets: ["Nostr", "NostrCrypto"]),
    .executable(name: "skep", targets: ["skep-cli"]),
    .executable(name: "skep-sim", targets: ["skep-sim"]),
  ],
  targets: [
    system("CSecp256k1", pkgConfig: "libsecp256k1", apt: "libsecp256k1-dev"),
    system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    system("CLMDB", pkgConfig: "lmdb", apt: "liblmdb-dev"),
    system("CWebSockets", pkgConfig: "libwebsockets", apt: "libwebsockets-dev"),
    system("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),
    system("CEdit", pkgConfig: "libedit", apt: "libedit-dev"),

    library("Platform", []),
    library("Nostr", []),
    library("NostrCrypto", ["Nostr", "Platform", "CSecp256k1", "CCrypto"]),
    library("SyncCore", ["Nostr", "NostrCrypto", "Platform"]),
    .target(
      name: "Migrations", path: "Migrations",
      resources: [.embedInCode("v001_log.sql"), .embedInCode("v002_peer_fault.sql")],
      swiftSettings: settings),
    library(
      "EventLog", ["Nostr", "NostrCrypto", "SyncCore", "Platform", "Migrations", "CSQLite"]),
    library("HotCache", ["Nostr", "SyncCore", "Platform", "EventLog", "CLMDB"]),
    library(
      "SearchStore", ["Nostr", "SyncCore", "Platform", "EventLog", "HotCache", "CSQLite"]),
    library(
      "SyncEngine",
      ["Nostr", "NostrCrypto", "SyncCore", "Platform", "EventLog", "HotCache", "SearchStore"]),
    library(
      "RelayServer",
      ["Nostr", "NostrCrypto", "SyncCore", "Platform", "EventLog", "HotCache"]),
    library("RelaySocket", ["Nostr", "SyncCore", "Platform", "CWebSockets"]),
    library("Skep", ["SyncEngine", "SyncCore", "RelaySocket", "NostrCrypto", "Nostr"]),
    .executableTarget(
      name: "skep-cli",
      dependencies: [
        "SyncEngine", "RelayServer", "RelaySocket", "SearchStore", "HotCache", "EventLog",
        "NostrCrypto", "Nostr", "SyncCore", "Platform", "CEdit",
      ],
      path: "Sources/skep", swiftSettings: settings),

    library(
      "SimulationKit",
      [
        "Nostr", "NostrCrypto", "SyncCore", "Platform", "EventLog", "HotCache", "SyncEngine",
        "RelayServer", "CSQLite",
      ],
      path: "Simulations/Kit"),
    library(
      "SimulationScenarios",
      ["SimulationKit", "Nostr", "NostrCrypto", "SyncCore", "RelayServer"],
      path: "Simulations/Scenarios"),
    .executableTarget(
      name: "skep-sim", dependencies: ["SimulationKit", "SimulationScenarios", "Platform"],
      path: "Simulations/Runner", swiftSettings: settings),

    library("RelayContract", ["Nostr", "NostrCrypto", "SyncCore"], path: "Tests/RelayContract"),
    tests("TidyTests", []),
    tests("NostrTests", ["Nostr"]),
    tests("NostrCryptoTests", ["NostrCrypto", "Nostr", "Platform", "CSecp256k1"]),
    tests("SyncCoreTests", ["SyncCore", "Nostr", "NostrCrypto", "Platform"]),
    tests(
      "EventLogTests",
      ["EventLog", "SyncCore", "Nostr", "NostrCrypto", "Platform", "Migrations", "CSQLite"]),
    .executableTarget(
      name: "CacheHolder", dependencies: ["HotCache", "EventLog", "SyncCore"],
      path: "Tests/CacheHolder",
      swiftSettings: settings),
    tests(
      "HotCacheTests",
      [
        "HotCache", "SearchStore", "EventLog", "SyncCore", "Nostr", "NostrCrypto", "Platform",
        "CacheHolder",
      ]),
    tests(
      "RelayServerTests",
      [
        "RelayServer", "RelayContract", "HotCache", "EventLog", "SyncCore", "Nostr", "NostrCrypto",
        "Platform",
      ]),
    tests("RelaySocketTests", ["RelaySocket", "SyncCore", "Nostr", "Platform"]),
    tests(
      "SyncEngineTests",
      [
        "SyncEngine", "RelayServer", "RelaySocket", "SearchStore", "HotCache", "EventLog",
        "SyncCore", "Nostr", "NostrCrypto", "Platform", "CSQLite",
      ]),
    tests(
      "CommandTests",
      [
        "skep-cli", "RelaySocket", "HotCache", "EventLog", "SyncCore", "Nostr", "NostrCrypto",
        "Platform",
      ]),
    tests(
      "LiveTests", ["RelayContract", "RelaySocket", "SyncCore", "Nostr", "NostrCrypto"]),
    tests(
      "SimulationTests",
      [
        "SimulationKit", "SimulationScenarios", "skep-sim", "RelayServer", "SyncCore", "Nostr",
        "CSQLite",
      ]),
  ]
)
