#!/usr/bin/env python3
"""ask.py URL FILTER: an independent question to a relay, with nothing but Python's standard library.

Sends one REQ, prints each event on a line of its own, and ends at EOSE. It shares no code with the
program under test, so that what it finds at the relay is evidence.
"""
import base64
import json
import os
import socket
import struct
import sys
from urllib.parse import urlsplit


def connect(url):
    parts = urlsplit(url)
    if parts.scheme != "ws":
        sys.exit("ask.py: only ws:// is spoken here")
    stream = socket.create_connection((parts.hostname, parts.port or 80), timeout=15)
    key = base64.b64encode(os.urandom(16)).decode()
    stream.sendall((
        f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = stream.recv(1)
        if not piece:
            sys.exit("ask.py: the relay closed during the handshake")
        head += piece
    if b" 101 " not in head.split(b"\r\n")[0]:
        sys.exit("ask.py: no upgrade: " + head.split(b"\r\n")[0].decode("latin1"))
    return stream


def send(stream, text):
    body = text.encode()
    mask = os.urandom(4)
    head = b"\x81"
    if len(body) < 126:
        head += bytes([0x80 | len(body)])
    elif len(body) < 65536:
        head += b"\xfe" + struct.pack(">H", len(body))
    else:
        head += b"\xff" + struct.pack(">Q", len(body))
    stream.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(body)))


def exactly(stream, count):
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            sys.exit("ask.py: the relay closed before EOSE")
        data += piece
    return data


def messages(stream):
    whole = b""
    while True:
        first, second = exactly(stream, 2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", exactly(stream, 2))[0]
        elif length == 127:
            length = struct.unpack(">Q", exactly(stream, 8))[0]
        body = exactly(stream, length)
        opcode = first & 0x0F
        if opcode == 8:
            sys.exit("ask.py: the relay closed before EOSE")
        if opcode in (0, 1, 2):
            whole += body
            if first & 0x80:
                yield json.loads(whole)
                whole = b""


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: ask.py URL FILTER")
    stream = connect(sys.argv[1])
    send(stream, json.dumps(["REQ", "ask", json.loads(sys.argv[2])]))
    for message in messages(stream):
        if message[0] == "EVENT" and message[1] == "ask":
            print(json.dumps(message[2], ensure_ascii=False, separators=(",", ":")))
        elif message[0] == "CLOSED":
            sys.exit(f"ask.py: refused: {message[2] if len(message) > 2 else ''}")
        elif message[0] == "EOSE":
            return


main()
