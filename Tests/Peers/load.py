#!/usr/bin/env python3
"""load.py FOLDER FILE [--together N]: writes each JSONL event into the database of a LocalRelay that is not running.

The library's own store decides what is taken, as for events that come over a socket; it writes those that are given to it
together in one transaction, where a relay commits each event that it is sent by itself.
"""
import argparse, asyncio, json, os
import nostr_sdk as ns

parser = argparse.ArgumentParser()
parser.add_argument('folder')
parser.add_argument('file')
parser.add_argument('--together', type=int, default=2000, help='events that are given to the store at once')
options = parser.parse_args()


async def main():
    ns.uniffi_set_event_loop(asyncio.get_running_loop())
    os.makedirs(options.folder, exist_ok=True)
    store = await ns.NostrLmdb.open(options.folder)
    taken = refused = 0
    with open(options.file, encoding='utf-8') as source:
        lines = [line for line in source if line.strip()]
    for start in range(0, len(lines), options.together):
        events = [ns.Event.from_json(line) for line in lines[start:start + options.together]]
        for status in await asyncio.gather(*map(store.save_event, events)):
            if status.is_success():
                taken += 1
            else:
                refused += 1
    print(json.dumps({'taken': taken, 'refused': refused}))

asyncio.run(main())
