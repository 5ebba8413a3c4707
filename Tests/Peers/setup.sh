#!/usr/bin/env bash
# Makes the virtual environment of the live suite's real relays. Idempotent.
set -euo pipefail
dir=${SKEP_PEERS:-$HOME/.cache/skep-peers}
[ -x "$dir/bin/nostr-relay" ] && "$dir/bin/python" -c 'import nostr_sdk, websockets, coincurve, lmdb, msgpack' 2>/dev/null && { echo "$dir"; exit 0; }
python3 -m venv "$dir"
"$dir/bin/pip" -q install 'nostr-relay[lmdb]==1.14' nostr-sdk==0.45.1 websockets coincurve >&2
echo "$dir"
