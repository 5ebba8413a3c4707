#!/usr/bin/env python3
"""Writes Tests/Vectors/nip44-own.json and nip49-own.json.

Needs the Python packages nostr-sdk, cryptography and coincurve. What nostr-sdk can make comes from
it; it refuses plaintexts over 65 408 bytes and makes nothing invalid, so the rest is built here
from the text of NIP-44 on cryptography's primitives, after this construction has been checked
against nostr-sdk in both directions. nostr-sdk draws its nonces itself, so each run gives other
vectors: commit what a run gave, and run it again only to add rows.
"""
import base64, hashlib, hmac, json, pathlib

import coincurve
import nostr_sdk
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "Vectors"


def secret(number):
    return hashlib.sha256(f"skep vector {number}".encode()).hexdigest()


def keys(number):
    return nostr_sdk.Keys.parse(secret(number))


def conversation_key(sec, pub):
    point = coincurve.PublicKey(bytes.fromhex("02" + pub)).multiply(bytes.fromhex(sec))
    return hmac.new(b"nip44-v2", point.format()[1:], hashlib.sha256).digest()


def padded_length(count):
    if count <= 32:
        return 32
    power = 1 << (count - 1).bit_length()
    chunk = 32 if power <= 256 else power // 8
    return chunk * ((count - 1) // chunk + 1)


def pad(plain, extended=None, length=None, room=None):
    """`extended`, `length` and `room` override what an honest sender would write."""
    length = len(plain) if length is None else length
    extended = length >= 65536 if extended is None else extended
    prefix = bytes(2) + length.to_bytes(4, "big") if extended else length.to_bytes(2, "big")
    room = padded_length(max(len(plain), 1)) if room is None else room
    return prefix + plain + bytes(room - len(plain))


def seal(key, nonce, padded, version=2):
    expanded = HKDFExpand(hashes.SHA256(), 76, nonce).derive(key)
    cipher = Cipher(algorithms.ChaCha20(expanded[:32], bytes(4) + expanded[32:44]), mode=None)
    sealed = cipher.encryptor().update(padded)
    mac = hmac.new(expanded[44:], nonce + sealed, hashlib.sha256).digest()
    return base64.b64encode(bytes([version]) + nonce + sealed + mac).decode()


def exchanges():
    texts = ["a", "🐝", "x" * 31, "x" * 32, "x" * 33, "grüße\n\tan alle\u0000!", "é" * 128,
             "y" * 256, "y" * 257, "z" * 1000, "cafe\u0301 ≠ café", "\u2028\u202e", "{\"v\":1}"]
    for index, text in enumerate(texts):
        one, two = keys(index), keys(100 + index)
        payload = nostr_sdk.nip44_encrypt(
            one.secret_key(), two.public_key(), text, nostr_sdk.Nip44Version.V2)
        key = conversation_key(secret(index), two.public_key().to_hex())
        nonce = base64.b64decode(payload)[1:33]
        assert seal(key, nonce, pad(text.encode())) == payload
        assert nostr_sdk.nip44_decrypt(two.secret_key(), one.public_key(), payload) == text
        yield {"sec1": secret(index), "sec2": secret(100 + index), "conversation_key": key.hex(),
               "nonce": nonce.hex(), "plaintext": text, "payload": payload}


def extended():
    key, nonce = hashlib.sha256(b"extended key").digest(), hashlib.sha256(b"nonce").digest()
    for pattern, repeat in [("x", 65535), ("x", 65536), ("x", 65537), ("🐝", 25000)]:
        payload = seal(key, nonce, pad((pattern * repeat).encode()))
        yield {"conversation_key": key.hex(), "nonce": nonce.hex(), "pattern": pattern,
               "repeat": repeat, "payload_sha256": hashlib.sha256(payload.encode()).hexdigest()}


def invalid():
    key, nonce = hashlib.sha256(b"invalid key").digest(), hashlib.sha256(b"nonce").digest()

    def row(note, error, payload):
        return {"conversation_key": key.hex(), "note": note, "error": error, "payload": payload}

    good = seal(key, nonce, pad(b"hello"))
    raw = base64.b64decode(good)
    yield row("none: the payload that the others are bent from", None, good)
    yield row("six-byte prefix before a short text", "padding",
              seal(key, nonce, pad(b"hello", extended=True)))
    yield row("six-byte prefix before 200 bytes", "padding",
              seal(key, nonce, pad(b"x" * 200, extended=True)))
    yield row("length zero", "padding", seal(key, nonce, pad(b"")))
    yield row("length one more than the text has room", "padding",
              seal(key, nonce, pad(b"x" * 32, length=33)))
    yield row("32 bytes of padding too many", "padding", seal(key, nonce, pad(b"hello", room=64)))
    yield row("a length far past the end", "padding", seal(key, nonce, pad(b"hello", length=65535)))
    yield row("a six-byte length far past the end", "padding",
              seal(key, nonce, pad(b"hello", extended=True, length=2**32 - 1)))
    yield row("not UTF-8", "notUTF8", seal(key, nonce, pad(b"\xff\xfe")))
    yield row("a lone surrogate", "notUTF8", seal(key, nonce, pad(b"\xed\xa0\x80")))
    for place in (40, len(raw) - 1):
        bent = bytearray(raw)
        bent[place] ^= 1
        yield row(f"one bit of byte {place} flipped", "mac", base64.b64encode(bent).decode())
    yield row("nonce of another message", "mac",
              base64.b64encode(raw[:1] + bytes(32) + raw[33:]).decode())
    yield row("version 1", "version", seal(key, nonce, pad(b"hello"), version=1))
    yield row("another version by its mark", "version", "#" + good[1:])
    yield row("one character is not Base64", "base64", good[:50] + "-" + good[51:])
    yield row("white space", "base64", good[:50] + "\n" + good[51:])
    yield row("padding cut off", "base64", seal(key, nonce, pad(b"x" * 33))[:-1])
    yield row("empty", "payloadLength", "")
    yield row("too short", "payloadLength", good[:128])


def key_files():
    for index, (passphrase, rounds) in enumerate([("nostr", 4), ("", 4), ("pässwörd 🐝", 10)]):
        text = nostr_sdk.EncryptedSecretKey(
            keys(index).secret_key(), passphrase, rounds, nostr_sdk.KeySecurity.MEDIUM)
        yield {"secret": secret(index), "passphrase": passphrase, "ncryptsec": text.to_bech32()}


def write(name, value):
    (VECTORS / name).write_text(json.dumps(value, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    write("nip44-own.json", {"exchange": list(exchanges()), "extended": list(extended()),
                             "invalid": list(invalid())})
    write("nip49-own.json", {"encrypted": list(key_files())})
