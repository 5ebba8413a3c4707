#!/usr/bin/env python3
"""ephemeral.py FILE: events that a relay does not keep: two versions of an address, a deleted note with its deletion, ephemeral ones, an expired one."""
import json, sys, time
from peer import sign
secret = '%064x' % 7
now = int(time.time()) - 7200
note = sign(secret, 1, [], 'gone soon', now)
events = [
    sign(secret, 30023, [['d', 'a']], 'one', now), sign(secret, 30023, [['d', 'a']], 'two', now + 1), note,
    sign(secret, 5, [['e', note['id']]], '', now + 2), sign(secret, 1, [['expiration', str(now + 10)]], 'short', now),
] + [sign(secret, 20001, [], str(n), now + n) for n in range(5)]
with open(sys.argv[1], 'w', encoding='utf-8') as out:
    for event in events: out.write(json.dumps(event, ensure_ascii=False) + '\n')
