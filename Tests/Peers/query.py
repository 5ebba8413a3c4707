#!/usr/bin/env python3
"""query.py URL FILTER_JSON [--auth SECRET_HEX]: one REQ until EOSE, event lines on stdout, the count on stderr."""
import argparse, json, sys
from peer import Peer, run

parser = argparse.ArgumentParser()
parser.add_argument('url')
parser.add_argument('filter')
parser.add_argument('--auth')
options = parser.parse_args()


async def main():
    async with Peer(options.url, options.auth) as peer:
        events = await peer.request(json.loads(options.filter))
        for event in events:
            print(json.dumps(event, separators=(',', ':'), ensure_ascii=False))
        print(len(events), file=sys.stderr)

run(main)
