#!/usr/bin/env bash
# The main job in half a minute: mirror a community, lose the relay, read and write without it, get
# the relay back, and prove that the messages arrived. Ends non-zero at the first thing that fails.
set -euo pipefail

skep=$(realpath "${1:-.build/release/skep}")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
relay_pid=

clean() {
  [ -z "$relay_pid" ] || kill "$relay_pid" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean EXIT

fail() {
  echo "demo: FAILED: $*" >&2
  exit 1
}

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }

show() {
  printf '$ skep %s\n' "$*"
  "$skep" "$@"
}

# Starts the demo relay on PORT (0 lets the system choose) and waits for its ready line.
start_relay() {
  : >"$scratch/ready"
  "$skep" demo-relay --listen "127.0.0.1:$1" --seed 7 --events 5000 --home "$scratch/relay" --json \
    >"$scratch/ready" 2>"$scratch/relay.log" &
  relay_pid=$!
  for _ in $(seq 200); do
    url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$scratch/ready" | sed 's/\\//g' | head -n 1)
    [ -z "$url" ] || return 0
    kill -0 "$relay_pid" 2>/dev/null || fail "the demo relay ended: $(cat "$scratch/relay.log")"
    read -r -t 0.1 <> <(:) || true
  done
  fail "the demo relay did not say that it listens"
}

stop_relay() {
  kill "$relay_pid"
  wait "$relay_pid" 2>/dev/null || true
  relay_pid=
}

export SKEP_HOME=$scratch/home NO_COLOR=1
begin=$SECONDS

say "A demo relay with 5000 events, and a key of our own"
start_relay 0
echo "relay: $url"
show key new

say "Mirror the community"
show mirror "$url" --all

say "The relay goes away"
stop_relay
echo "relay: stopped"

say "Read a channel without it, and write three messages and a reply"
cat >"$scratch/script" <<'LINES'
/channels
/open general
/history 8
The relay is gone, and I can still read all of this.
So I write as if nothing had happened.
It will leave when the relay is back.
/reply #8 This is an answer, written offline too.
/outbox
/quit
LINES
sed 's/^/  > /' "$scratch/script"
echo '$ skep chat --offline < script'
"$skep" chat --offline <"$scratch/script"

say "The relay comes back on the same port, and the outbox is sent"
start_relay "${url##*:}"
show sync --once
show outbox

say "Ask the relay itself, with a client that shares no code with Skep"
pubkey=$("$skep" key show --json | sed -n 's/.*"pubkey":"\([0-9a-f]*\)".*/\1/p')
filter="{\"kinds\":[9],\"authors\":[\"$pubkey\"]}"
echo "\$ ask.py $url '$filter'"
python3 "$here/ask.py" "$url" "$filter" >"$scratch/found"
python3 - "$scratch/found" <<'CHECK' || fail "the relay does not hold exactly the four messages"
import json, sys
found = [json.loads(line) for line in open(sys.argv[1])]
wanted = {
    "The relay is gone, and I can still read all of this.",
    "So I write as if nothing had happened.",
    "It will leave when the relay is back.",
    "This is an answer, written offline too.",
}
for event in found:
    print(event["id"][:8], event["content"])
sys.exit(0 if len(found) == 4 and {event["content"] for event in found} == wanted else 1)
CHECK
stop_relay

say "Export everything and verify it"
show export --out "$scratch/community.jsonl" --manifest "$scratch/manifest.json"
"$skep" verify "$scratch/community.jsonl" | tail -n 1
show verify

printf '\ndemo: done in %s s\n' "$((SECONDS - begin))"
