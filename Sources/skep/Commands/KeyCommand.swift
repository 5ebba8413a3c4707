import Nostr
import NostrCrypto
import SyncEngine

/// `skep key new|import|show|export`.
enum KeyCommand: Command {
  private static let encrypt = OptionSpec.flag(
    "encrypt", "ask for a passphrase and encrypt the key (NIP-49); so does SKEP_PASSPHRASE")

  static let spec = CommandSpec(
    "key", about: "The identity of a community (with --community), or the default one.",
    examples: ["skep key new", "skep key import - < key.txt"],
    verbs: [
      CommandSpec(
        "new", options: [encrypt], about: "makes a key",
        examples: ["skep key new", "skep key new --encrypt"]),
      CommandSpec(
        "import", "nsec1…|ncryptsec1…|-", count: 1...1, options: [encrypt],
        about: "takes a key over; - reads it from stdin. An encrypted key stays encrypted.",
        examples: ["skep key import - < key.txt", "skep key import - --json < key.txt"]),
      CommandSpec(
        "show", about: "prints the public key",
        examples: ["skep key show", "skep key show --json --community relay.example.com"]),
      CommandSpec(
        "export", options: [.flag("yes", "yes, print the secret key")],
        about: "prints the secret key",
        examples: ["skep key export --yes", "skep key export --yes --json"]),
    ])

  static func run(_ context: Context) async throws -> ExitCode {
    let community = try community(context)
    let identity = Identity(home: try context.home(), environment: context.environment)
    switch context.invocation.command[1] {
    case "new": try save(SecretKey.generate(), community, identity, context)
    case "import":
      let (key, passphrase) = try await given(identity, context)
      try save(key, community, identity, context, passphrase: passphrase)
    case "show": try show(try load(community, identity), secret: false, context)
    default:
      guard context.invocation.has("yes") else {
        throw context.usage(
          "key export prints the secret key, which gives whoever reads it your identity; say --yes")
      }
      try show(try load(community, identity), secret: true, context)
    }
    return .done
  }

  /// Nil for the default identity; a community may get its key before it is joined.
  private static func community(_ context: Context) throws -> CommunityName? {
    guard let word = context.invocation.value("community") else { return nil }
    if let url = RelayURL(word) { return try context.home().community(of: url) }
    return try CommunityFolder.chosen(context).name
  }

  private static func load(_ community: CommunityName?, _ identity: Identity) throws -> SecretKey {
    guard let key = try identity.load(for: community) else {
      throw Failure(.partial, "there is no key yet: “skep key new” makes one")
    }
    return key
  }

  private static func save(
    _ key: SecretKey, _ community: CommunityName?, _ identity: Identity, _ context: Context,
    passphrase: [UInt8]? = nil
  ) throws {
    try identity.save(
      key, for: community, encrypts: context.invocation.has("encrypt"), passphrase: passphrase)
    context.talk.say("saved in \(identity.path(of: community)); keep a copy of that file")
    try show(key, secret: false, context)
  }

  /// - Returns: The key, and the passphrase that it was encrypted with.
  private static func given(
    _ identity: Identity, _ context: Context
  ) async throws -> (SecretKey, [UInt8]?) {
    var word = context.invocation.operands[0]
    if word == "-" {
      let source = try ByteSource(path: "-", stop: context.stop)
      var bytes: [UInt8] = []
      while bytes.count < 4096, let piece = try await source.next() { bytes += piece }
      word = String(decoding: bytes, as: UTF8.self)
    } else {
      context.talk.say("a key on the command line stays in the shell's history; - reads stdin")
    }
    let letters = word.split(whereSeparator: \.isWhitespace).joined()
    if letters.lowercased().hasPrefix("ncryptsec1") {
      return try decrypted(letters, identity, context)
    }
    do throws(KeyError) {
      if letters.count == 64, let bytes = Hex.bytes(letters.lowercased().utf8) {
        return (try SecretKey(bytes: bytes), nil)
      }
      return (try SecretKey(nsec: letters), nil)
    } catch {
      throw context.usage("\(error); expected nsec1…, ncryptsec1…, or 64 hex digits")
    }
  }

  /// What the file of an encrypted key holds, which is what one keeps a copy of.
  private static func decrypted(
    _ letters: String, _ identity: Identity, _ context: Context
  ) throws -> (SecretKey, [UInt8]?) {
    guard let passphrase = try identity.passphrase(prompt: "passphrase of the key: ") else {
      throw Failure(
        .key,
        "the key is encrypted: set SKEP_PASSPHRASE to its passphrase, or run this on a terminal"
      )
    }
    do throws(NIP49Error) {
      return (try NIP49.decrypt(letters, passphrase: passphrase), passphrase)
    } catch {
      if case .malformed = error { throw context.usage("\(error)") }
      throw Failure(.key, "\(error); nothing was saved")
    }
  }

  private static func show(_ key: SecretKey, secret: Bool, _ context: Context) throws {
    let npub = NameWords.npub(key.publicKey)
    guard context.wantsJSON else {
      return try context.out.write(line: secret ? key.nsec() : npub)
    }
    var row: [(String, JSON)] = [("npub", JSON(npub)), ("pubkey", JSON(key.publicKey.hex))]
    if secret { row.append(("nsec", JSON(key.nsec()))) }
    try context.out.write(row: .object(row))
  }
}
