#!/usr/bin/env python3
"""wait-port.py PORT [SECONDS]: returns when 127.0.0.1:PORT accepts a connection; exit code 1 when it did not in time."""
import socket, sys, time

port, seconds = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 30
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        socket.create_connection(('127.0.0.1', port), 1).close()
        sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit(1)
