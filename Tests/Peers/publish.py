#!/usr/bin/env python3
"""publish.py URL FILE|- [--window N] [--each N] [--auth SECRET_HEX]: sends each JSONL event, counts the OKs by verdict and reason.

A busy relay answers some events with an error of its own: those alone are sent again, a few times.
Returns when the last event is served: one relay here says OK before it has written, and writes in order.
"""
import argparse, asyncio, collections, json, sys
from peer import Peer, Refused, run

parser = argparse.ArgumentParser()
parser.add_argument('url')
parser.add_argument('file')
parser.add_argument('--window', type=int, default=256, help='events without an answer at any moment')
parser.add_argument('--each', type=int, default=5000, help='events a connection; some relays drop one that sends more')
parser.add_argument('--auth')
options = parser.parse_args()


TRIES = 5


async def send(lines, answers):
    """Returns the lines that the relay answered with an error of its own, which are not counted."""
    open_now, failed = 0, set()
    async with Peer(options.url, options.auth) as peer:
        if options.auth and not peer.challenge:
            # Some relays ask for AUTH only at the first request.
            await peer.request({'kinds': [9], 'limit': 1})
        async def settle(limit):
            nonlocal open_now
            while open_now > limit:
                frame = await peer.receive()
                if frame[0] == 'OK':
                    open_now -= 1
                    reason = '' if frame[2] else frame[3].split(':')[0]
                    if reason == 'error':
                        failed.add(frame[1])
                    else:
                        answers[(frame[2], reason)] += 1
        for line in lines:
            await settle(options.window - 1)
            await peer.socket.send('["EVENT",' + line + ']')
            open_now += 1
        await settle(0)
    return [line for line in lines if json.loads(line)['id'] in failed] if failed else []


async def served(event):
    """Waits, for a minute at most, until a relay that took an event also serves it."""
    async with Peer(options.url, options.auth) as peer:
        for _ in range(600):
            if await peer.request({'ids': [event['id']]}):
                return
            await asyncio.sleep(0.1)
    raise SystemExit(f'{event["id"]} was taken and is not served')


async def main():
    source = sys.stdin if options.file == '-' else open(options.file, encoding='utf-8')
    lines = [line.strip() for line in source if line.strip()]
    answers = collections.Counter()
    for start in range(0, len(lines), options.each):
        left = lines[start:start + options.each]
        for _ in range(TRIES):
            left = left and await send(left, answers)
        if left:
            answers[(False, 'error')] += len(left)
    if lines and set(k[0] for k in answers) == {True}:
        try:
            await served(json.loads(lines[-1]))
        except Refused:
            print('this key may not read: nobody knows whether all is written', file=sys.stderr)
    print(json.dumps({'sent': len(lines), 'answers': {f'{k[0]} {k[1]}'.strip(): v for k, v in answers.items()}}))

run(main)
