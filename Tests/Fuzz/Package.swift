// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that the normal build never needs the fuzzer's runtime. One target a
// file; run.sh finds them by the name of their folder.
func fuzz(_ name: String, _ products: [String]) -> Target {
  .executableTarget(
    name: name,
    dependencies: products.map { .product(name: $0, package: "skep") },
    swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library"])])
}

let package = Package(
  name: "fuzz",
  dependencies: [.package(name: "skep", path: "../..")],
  targets: [
    fuzz("EventScannerFuzz", ["Nostr"]),
    fuzz("RelayMessageFuzz", ["Nostr"]),
    fuzz("NIP19Fuzz", ["Nostr"]),
    fuzz("NIP44Fuzz", ["Nostr"]),
  ]
)
