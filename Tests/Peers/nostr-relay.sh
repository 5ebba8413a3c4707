#!/usr/bin/env bash
# nostr-relay.sh sqlite|lmdb PORT DATADIR [auth]   runs the Python relay in the foreground on 127.0.0.1.
# MAX_LIMIT=n caps a page (SQLite only); RATE='{"ip":{"EVENT":"5/s"}}' limits rates.
# With auth, anyone may write and reading needs a key that nostr-relay-reader.sh has named.
set -euo pipefail
backend=$1 port=$2 data=$3 auth=${4:-}
venv=${SKEP_PEERS:-$HOME/.cache/skep-peers}
mkdir -p "$data"; data=$(cd "$data" && pwd)
if [ "$backend" = sqlite ]; then
  store="  sqlalchemy.url: sqlite+aiosqlite:///$data/nostr.sqlite3
  num_concurrent_reqs: 10
  num_concurrent_adds: 2"
else
  store="  class: nostr_relay.storage.kv.LMDBStorage
  path: $data/nostr.lmdb
  map_size: 4294967296
  metasync: true
  pool_size: 4"
fi
cat > "$data/config.yaml" <<Y
DEBUG: false
relay_name: nostr-relay $backend
service_privatekey: "$(printf %064d 7)"
storage:
$store
  validators:
    - nostr_relay.validators.is_not_too_large
    - nostr_relay.validators.is_signed
    - nostr_relay.validators.is_recent
verification:
  nip05_verification: disabled
gunicorn: {bind: "127.0.0.1:$port", workers: 1, loglevel: warning, reload: false}
authentication:
  enabled: $([ "$auth" = auth ] && echo true || echo false)
  relay_urls: ["ws://localhost:$port", "ws://127.0.0.1:$port"]
  actions: {save: "${AUTH_SAVE:-aw}", query: "${AUTH_QUERY:-r}"}
message_timeout: 1800
subscription_limit: ${SUBSCRIPTIONS:-32}
max_limit: ${MAX_LIMIT:-6000}
max_event_size: 65536
${RATE:+rate_limits: $RATE}
logging:
  version: 1
  formatters: {simple: {format: "%(asctime)s %(name)s %(levelname)s %(message)s"}}
  handlers: {console: {class: logging.StreamHandler, level: ERROR, formatter: simple, stream: ext://sys.stderr}}
  root: {level: ERROR, handlers: [console]}
Y
cd "$data"
exec "$venv/bin/nostr-relay" -c "$data/config.yaml" serve --use-uvicorn
