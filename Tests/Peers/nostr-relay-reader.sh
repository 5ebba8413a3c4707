#!/usr/bin/env bash
# nostr-relay-reader.sh DATADIR PUBKEY_HEX: lets a key read from a relay that nostr-relay.sh runs with auth.
set -euo pipefail
venv=${SKEP_PEERS:-$HOME/.cache/skep-peers}
exec "$venv/bin/nostr-relay" -c "$1/config.yaml" role set -p "$2" -r rw
