#!/usr/bin/env python3
"""negentropy-transcripts.py OUT [COUNT]: records NIP-77 sessions between nostr-sdk's client and its LocalRelay, byte for byte.

Both ends are the Rust implementation; a proxy between them writes down what they say. A message over 4 KiB is kept as its
SHA-256 and length. Items are generated from a seed, so that the same call gives the same sessions; with
COUNT, one session of so many events, one in a hundred apart.
"""
import asyncio, datetime, hashlib, json, random, sys
import nostr_sdk as ns
import websockets

SIGNER = ns.Keys.parse('%064x' % 7)


def event(n, at):
    return ns.EventBuilder(ns.Kind(1), '%d' % n).custom_created_at(ns.Timestamp.from_secs(at)).finalize(SIGNER)


def case(name, seed, count, seconds, ours, theirs):
    """Events over so many seconds; each is in one set, in the other, or in both, with these chances in percent."""
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        e = event(seed * 1000000 + n, 1700000000 + rng.randrange(seconds))
        rows.append((e, rng.randrange(100) < ours, rng.randrange(100) < theirs))
    return name, [r[0] for r in rows if r[1]], [r[0] for r in rows if r[2]]


CASES = [
    case('both empty', 1, 1, 1, 0, 0), case('a small list', 2, 40, 10, 70, 70), case('equal', 3, 64, 86400, 100, 100),
    case('five in a hundred apart', 4, 500, 86400, 95, 95), case('one second', 5, 200, 1, 80, 80), case('nothing here', 6, 2000, 86400, 0, 100),
    case('nothing there', 7, 100, 86400, 100, 0),
]


async def record(name, ours, theirs):
    relay = ns.LocalRelayBuilder().addr('127.0.0.1').rate_limit(ns.RateLimit(max_reqs=1000000, notes_per_minute=100000000)).build()
    await relay.run()
    url = str(await relay.url())
    # It drops whoever sends too much on one connection.
    for start in range(0, len(theirs), 4000):
        async with websockets.connect(url, max_size=None) as socket:
            for e in theirs[start:start + 4000]:
                await socket.send(json.dumps(['EVENT', json.loads(e.as_json())]))
                while json.loads(await socket.recv())[0] != 'OK': pass
    frames = []
    async def proxy(client):
        async with websockets.connect(url, max_size=None) as server:
            async def pump(source, target, who):
                async for text in source:
                    frame = json.loads(text)
                    if frame[0] in ('NEG-OPEN', 'NEG-MSG'): frames.append((who, frame[3] if frame[0] == 'NEG-OPEN' else frame[2]))
                    await target.send(text)
            await asyncio.wait([asyncio.create_task(pump(client, server, 'client')), asyncio.create_task(pump(server, client, 'server'))], return_when=asyncio.FIRST_COMPLETED)
    async with websockets.serve(proxy, '127.0.0.1', 0, max_size=None) as door:
        port = door.sockets[0].getsockname()[1]
        client = ns.Client()
        there = ns.RelayUrl.parse('ws://127.0.0.1:%d' % port)
        await client.add_relay(there)
        await client.try_connect(datetime.timedelta(seconds=5))
        handle = await client.relay(there)
        items = [ns.NegentropyItem(id=e.id(), timestamp=e.created_at()) for e in ours]
        await handle.sync(ns.Filter(), items, ns.SyncOptions().dry_run().direction(ns.SyncDirection.BOTH))
        await client.disconnect()
    await asyncio.sleep(0)
    def kept(hexed):
        return hexed if len(hexed) <= 8192 else 'sha256:%d:%s' % (len(hexed) // 2, hashlib.sha256(bytes.fromhex(hexed)).hexdigest())
    sides = {}
    for side, events in (('o', ours), ('t', theirs)):
        for e in events:
            item = '%08x%s' % (e.created_at().as_secs(), e.id().to_hex())
            sides[item] = sides.get(item, '') + side
    # Eight digits of the time, the id, and whose it is: the client's (o), the relay's (t) or both.
    return {'name': name, 'items': [item + side for item, side in sides.items()], 'frames': [[who, kept(text)] for who, text in frames]}


async def main():
    ns.uniffi_set_event_loop(asyncio.get_running_loop())
    cases = [case('large', 8, int(sys.argv[2]), 86400, 99, 99)] if len(sys.argv) > 2 else CASES
    rows = [await record(*c) for c in cases]
    with open(sys.argv[1], 'w') as out:
        for row in rows: out.write(json.dumps(row, separators=(',', ':')) + '\n')
    for row in rows: print(row['name'], len(row['items']), [(w[0], len(t) // 2 if not t.startswith('sha') else t.split(':')[1]) for w, t in row['frames']])

asyncio.run(main())
