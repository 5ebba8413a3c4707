#!/usr/bin/env python3
"""page.py URL [FILTER_JSON] [--auth SECRET_HEX] [--events]: every event that a relay serves, paged out with NIP-01 alone.

Prints the ids, sorted, one a line (with --events the events). NIP-01 says that `until` is inclusive and one relay here
takes it as exclusive, so each page asks one second more than it needs and what came twice counts once. A second that fills a whole page is asked for by kind, then by author; one that still does not fit is an error, because
then nobody can say what the relay holds.
"""
import argparse, json, sys, time
from peer import Peer, run

parser = argparse.ArgumentParser()
parser.add_argument('url')
parser.add_argument('filter', nargs='?', default='{}')
parser.add_argument('--auth')
parser.add_argument('--events', action='store_true')
options = parser.parse_args()
# Both ends are always given: one relay here takes a filter without either for a filter that matches nothing.
base = {'since': 1, 'until': int(time.time()) + 86400, **json.loads(options.filter)}
LIMIT = 5000
found, largest, pages = {}, 0, 0


async def ask(peer, **more):
    global largest, pages
    events = await peer.request({'limit': LIMIT, **base, **more})
    pages += 1
    largest = max(largest, len(events))
    for event in events:
        found[event['id']] = event
    return events


async def second(peer, at):
    """Everything of one second, split until each answer is smaller than the largest page seen."""
    events = await ask(peer, since=at, until=at + 1)
    if len(events) < largest:
        return
    for kind in sorted({event['kind'] for event in events} | set(base.get('kinds', range(0, 20)))):
        events = await ask(peer, since=at, until=at + 1, kinds=[kind])
        if len(events) < largest:
            continue
        for author in sorted({event['pubkey'] for event in found.values()}):
            if len(await ask(peer, since=at, until=at + 1, kinds=[kind], authors=[author])) >= largest:
                raise SystemExit(f'second {at}, kind {kind}, author {author} does not fit a page')


async def main():
    async with Peer(options.url, options.auth) as peer:
        events = await ask(peer)
        while events:
            oldest = min(event['created_at'] for event in events)
            events = await ask(peer, until=oldest + 1)
            if events and min(event['created_at'] for event in events) < oldest:
                continue
            # Nothing older came: the page is full of these two seconds, or this is the end.
            await second(peer, oldest)
            events = await ask(peer, until=oldest)
            if events and min(event['created_at'] for event in events) == oldest:
                events = await ask(peer, until=oldest - 1)
    for i in sorted(found):
        print(json.dumps(found[i], separators=(',', ':'), ensure_ascii=False) if options.events else i)
    print(f'{len(found)} events in {pages} pages, the largest of {largest}', file=sys.stderr)

run(main)
