import CCrypto

// Thin calls into libcrypto. What can fail here is memory or a broken library: no caller could go
// on with half a cipher, so both stop the process with a sentence.

/// HMAC with SHA-256 (RFC 2104).
enum HMAC {
  static func sha256(_ bytes: ArraySlice<UInt8>, key: UnsafeRawBufferPointer) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    var count = 0
    let made = bytes.withUnsafeBytes { bytes in
      EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key.baseAddress, key.count,
        bytes.octets, bytes.count,
        &result, result.count, &count)
    }
    precondition(made != nil && count == 32, "libcrypto gave no HMAC")
    return result
  }
}

/// HKDF with SHA-256 (RFC 5869), its two halves apart.
enum HKDF {
  static func extract(_ input: SecretBytes, salt: StaticString) -> SecretBytes {
    derive(count: 32, mode: EVP_KDF_HKDF_MODE_EXTRACT_ONLY, key: input) { context in
      EVP_PKEY_CTX_set1_hkdf_salt(context, salt.utf8Start, Int32(salt.utf8CodeUnitCount))
    }
  }

  static func expand(_ key: SecretBytes, info: [UInt8], count: Int) -> SecretBytes {
    derive(count: count, mode: EVP_KDF_HKDF_MODE_EXPAND_ONLY, key: key) { context in
      EVP_PKEY_CTX_add1_hkdf_info(context, info, Int32(info.count))
    }
  }

  private static func derive(
    count: Int, mode: Int32, key: SecretBytes, _ finishSetup: (OpaquePointer?) -> Int32
  ) -> SecretBytes {
    let context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var isReady =
      EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_CTX_set_hkdf_mode(context, mode) == 1
      && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1
    isReady =
      isReady
      && key.withUnsafeBytes { bytes in
        EVP_PKEY_CTX_set1_hkdf_key(
          context, bytes.octets, Int32(bytes.count)) == 1
      }
    isReady = isReady && finishSetup(context) == 1
    precondition(isReady, "libcrypto refused to set up HKDF")
    return SecretBytes(count: count) { result in
      var written = count
      let derived = EVP_PKEY_derive(
        context, result.octets, &written)
      precondition(derived == 1 && written == count, "libcrypto gave no HKDF output")
    }
  }
}

/// ChaCha20 (RFC 8439); the same call encrypts and decrypts.
enum ChaCha20 {
  /// - Parameters:
  ///   - key: 32 bytes.
  ///   - nonce: 12 bytes.
  static func apply(
    to bytes: ArraySlice<UInt8>, key: UnsafeRawBufferPointer, counter: UInt32,
    nonce: UnsafeRawBufferPointer
  ) -> [UInt8] {
    // libcrypto's vector is the block counter in little-endian order, then the nonce.
    let vector = withUnsafeBytes(of: counter.littleEndian) { Array($0) } + Array(nonce)
    return apply(to: bytes, key: key, vector: vector)
  }

  /// - Parameter vector: The last four words of the cipher's state.
  static func apply(
    to bytes: ArraySlice<UInt8>, key: UnsafeRawBufferPointer, vector: [UInt8]
  ) -> [UInt8] {
    precondition(key.count == 32 && vector.count == 16, "ChaCha20 takes 32 and 16 bytes")
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    var result = [UInt8](repeating: 0, count: bytes.count)
    var written: Int32 = 0
    let started = EVP_EncryptInit_ex2(
      context, EVP_chacha20(), key.octets, vector, nil)
    let isDone =
      started == 1
      && bytes.withUnsafeBytes { bytes in
        EVP_EncryptUpdate(
          context, &result, &written, bytes.octets,
          Int32(bytes.count)) == 1
      }
    precondition(isDone && Int(written) == bytes.count, "libcrypto gave no ChaCha20 output")
    return result
  }
}

/// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha): a nonce of 24 bytes, so that random ones do.
enum XChaCha20Poly1305 {
  static let tagLength = 16

  /// Returns the ciphertext and its tag.
  static func seal(
    _ bytes: UnsafeRawBufferPointer, key: SecretBytes, nonce: [UInt8], associated: [UInt8]
  ) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: bytes.count + tagLength)
    let isDone = run(key: key, nonce: nonce, associated: associated, sealing: true) { context in
      var written: Int32 = 0
      var rest: Int32 = 0
      return result.withUnsafeMutableBytes { result in
        let start = result.octets
        return EVP_EncryptUpdate(
          context, start, &written, bytes.octets,
          Int32(bytes.count)) == 1
          && EVP_EncryptFinal_ex(context, start + Int(written), &rest) == 1
          && EVP_CIPHER_CTX_ctrl(
            context, EVP_CTRL_AEAD_GET_TAG, Int32(tagLength), start + bytes.count) == 1
      }
    }
    precondition(isDone, "libcrypto gave no ChaCha20-Poly1305 output")
    return result
  }

  /// The plaintext, or nil where the tag says that key, nonce or bytes are not the ones sealed.
  static func open(
    _ sealed: [UInt8], key: SecretBytes, nonce: [UInt8], associated: [UInt8]
  ) -> SecretBytes? {
    guard sealed.count >= tagLength else { return nil }
    let count = sealed.count - tagLength
    var tag = Array(sealed[count...])
    var isDone = false
    let plain = SecretBytes(count: count) { result in
      let start = result.octets
      isDone = run(key: key, nonce: nonce, associated: associated, sealing: false) { context in
        var written: Int32 = 0
        var rest: Int32 = 0
        return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), &tag) == 1
          && EVP_DecryptUpdate(context, start, &written, sealed, Int32(count)) == 1
          && EVP_DecryptFinal_ex(context, start + Int(written), &rest) == 1
      }
    }
    return isDone ? plain : nil
  }

  private static func run(
    key: SecretBytes, nonce: [UInt8], associated: [UInt8], sealing: Bool,
    _ body: (OpaquePointer?) -> Bool
  ) -> Bool {
    precondition(key.count == 32 && nonce.count == 24, "XChaCha20 takes 32 and 24 bytes")
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    let subkey = hchacha20(key: key, nonce: nonce[0..<16])
    let vector: [UInt8] = [0, 0, 0, 0] + nonce[16...]
    let started = subkey.withUnsafeBytes { subkey in
      EVP_CipherInit_ex2(
        context, EVP_chacha20_poly1305(),
        subkey.octets, vector, sealing ? 1 : 0, nil)
    }
    var written: Int32 = 0
    guard started == 1,
      EVP_CipherUpdate(context, nil, &written, associated, Int32(associated.count)) == 1
    else { return false }
    return body(context)
  }

  /// HChaCha20, which libcrypto lacks.
  ///
  /// A ChaCha20 block is the state after twenty rounds plus the state before them, word by word;
  /// HChaCha20 is the first and last four words without that addition. So the block comes from
  /// libcrypto and only the addition is taken back here, of words that are known: the constants and
  /// the nonce.
  static func hchacha20(key: SecretBytes, nonce: ArraySlice<UInt8>) -> SecretBytes {
    var block = key.withUnsafeBytes { key in
      ChaCha20.apply(to: ArraySlice(repeating: 0, count: 64), key: key, vector: Array(nonce))
    }
    defer { wipe(&block) }
    let constants = Array("expand 32-byte k".utf8)
    return SecretBytes(count: 32) { result in
      for word in 0..<4 {
        let first = load(block, at: word * 4) &- load(constants, at: word * 4)
        let last = load(block, at: 48 + word * 4) &- load(Array(nonce), at: word * 4)
        result.storeBytes(of: first.littleEndian, toByteOffset: word * 4, as: UInt32.self)
        result.storeBytes(of: last.littleEndian, toByteOffset: 16 + word * 4, as: UInt32.self)
      }
    }
  }

  private static func load(_ bytes: [UInt8], at offset: Int) -> UInt32 {
    bytes.withUnsafeBytes {
      UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
  }
}

/// scrypt (RFC 7914) with the parameters that NIP-49 fixes: r 8, p 1.
enum Scrypt {
  /// 32 bytes, or nil where the machine has not the memory: 1 KiB times 2^`logN`.
  static func key(
    passphrase: [UInt8], salt: [UInt8], logN: UInt8
  ) -> SecretBytes? {
    let rounds = UInt64(1) << UInt64(logN)
    // libcrypto's own limit is 32 MiB, less than the weakest parameter in use.
    let memoryMax = 128 * 8 * (rounds + 16)
    var isDone = false
    let key = SecretBytes(count: 32) { result in
      isDone = passphrase.withUnsafeBytes { passphrase in
        EVP_PBE_scrypt(
          passphrase.baseAddress?.assumingMemoryBound(to: CChar.self), passphrase.count,
          salt, salt.count, rounds, 8, 1, memoryMax,
          result.octets, 32) == 1
      }
    }
    return isDone ? key : nil
  }
}

/// Compares without telling by its time where the first difference is.
func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
}
