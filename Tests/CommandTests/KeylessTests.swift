import Foundation
import Glibc
import Testing

/// What a key that cannot be opened stops, and what it does not.
@Suite struct KeylessTests {
  private static let key = "/identity/default.key"

  @Test func `a mirror goes on without a key that it does not need`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    _ = try skep.run("key", "new")
    #expect(chmod(skep.home + Self.key, 0o644) == 0)
    let open = try skep.run("mirror", relay.url, "--all")
    #expect(open.code == 0)
    #expect(open.stderr.contains("chmod 600"))
    #expect(chmod(skep.home + Self.key, 0o600) == 0)
    #expect(try !skep.run("mirror", relay.url, "--all").stderr.contains("without the key"))
  }

  @Test func `a mirror that needs the key says why it was not used`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep, "--auth")
    _ = try skep.run("key", "new")
    #expect(chmod(skep.home + Self.key, 0o644) == 0)
    let refused = try skep.run("mirror", relay.url, "--all")
    #expect(refused.code == 77)
    #expect(refused.stderr.contains("chmod 600") && refused.stderr.contains(relay.url))
  }

  @Test(arguments: ["wrong", "", "dangling", "noise", "open folder"])
  func `whatever keeps a key shut, a mirror goes on until it is asked for it`(how: String) throws {
    var skep = try SkepProcess()
    let (plain, strict) = (try DemoProcess(skep), try DemoProcess(skep, "--auth"))
    skep.environment["SKEP_PASSPHRASE"] = "correct horse"
    _ = try skep.run("key", "new")
    skep.environment["SKEP_PASSPHRASE"] = how == "dangling" || how == "noise" ? nil : how
    let file = skep.home + Self.key
    switch how {
    case "dangling":
      #expect(unlink(file) == 0 && symlink("/nowhere/at/all", file) == 0)
      #expect(try skep.run("key", "show").code == 77)
    case "noise": try Data("noise".utf8).write(to: URL(filePath: file))
    case "open folder":
      skep.environment["SKEP_PASSPHRASE"] = "correct horse"
      #expect(chmod(skep.home + "/identity", 0o777) == 0)
    default: break
    }
    let open = try skep.run("mirror", plain.url, "--all")
    #expect(open.code == 0 && open.stderr.contains("going on without the key"), "\(open.stderr)")
    let refused = try skep.run("mirror", strict.url, "--all")
    #expect(refused.code == 77, "\(refused.stderr)")
  }

  @Test func `without its passphrase a chat reads, and says what writing needs`() throws {
    var skep = try SkepProcess()
    skep.environment["SKEP_PASSPHRASE"] = "correct horse"
    _ = try skep.run("key", "new")
    skep.environment = [:]
    try skep.importDemo()
    let lines = "/channels\n/open general\nhello\n"
    let outcome = try skep.run("chat", "--offline", "--json", stdin: lines)
    #expect(outcome.code == 1)
    let ends = try outcome.rows().filter { $0["type"] as? String == "done" }
    #expect(ends.compactMap { $0["ok"] as? Bool } == [true, true, false])
    let error = try #require(ends.last?["error"] as? [String: Any])
    #expect((error["message"] as? String)?.contains("SKEP_PASSPHRASE") == true)
    skep.environment["SKEP_PASSPHRASE"] = "correct horse"
    let again = try skep.run("chat", "--offline", "--json", stdin: lines)
    #expect(try again.rows().filter { $0["ok"] as? Bool == true }.count == 3)
  }
}
