"""What the independent client scripts share: one connection, AUTH, and a bound on every wait.

Nothing here knows the project's own code: what these scripts say about a relay is a second opinion.
"""
import asyncio, hashlib, json, time
import websockets
from coincurve import PrivateKey

WAIT = 60


class Refused(Exception):
    pass


def sign(secret, kind, tags, content, created_at=None):
    key = PrivateKey(bytes.fromhex(secret))
    pubkey = key.public_key.format(True)[1:].hex()
    created_at = created_at or int(time.time())
    body = [0, pubkey, created_at, kind, tags, content]
    i = hashlib.sha256(json.dumps(body, separators=(',', ':'), ensure_ascii=False).encode()).digest()
    return dict(id=i.hex(), pubkey=pubkey, created_at=created_at, kind=kind, tags=tags, content=content,
                sig=key.sign_schnorr(i, b'\0' * 32).hex())


class Peer:
    """One connection. `async with Peer(url, secret) as peer`."""

    def __init__(self, url, secret=None):
        self.url, self.secret, self.challenge, self.requests = url, secret, None, 0

    async def __aenter__(self):
        self.socket = await websockets.connect(self.url, max_size=None, compression=None, ping_interval=None)
        if self.secret:
            # Some relays challenge at once, others only when asked for something.
            try:
                while not self.challenge:
                    await self.receive(1)
            except asyncio.TimeoutError:
                pass
        return self

    async def __aexit__(self, *_):
        await self.socket.close()

    async def send(self, *frame):
        await self.socket.send(json.dumps(frame, separators=(',', ':'), ensure_ascii=False))

    async def receive(self, seconds=WAIT):
        frame = json.loads(await asyncio.wait_for(self.socket.recv(), seconds))
        if frame[0] == 'AUTH':
            self.challenge = frame[1]
            if self.secret:
                await self.send('AUTH', sign(self.secret, 22242, [['relay', self.url], ['challenge', frame[1]]], ''))
        return frame

    async def request(self, *filters):
        """The events of one REQ until EOSE. An `auth-required` refusal is answered and asked again once."""
        for attempt in (1, 2):
            self.requests += 1
            name, events = f'q{self.requests}', []
            await self.send('REQ', name, *filters)
            while True:
                frame = await self.receive()
                if frame[0] == 'EVENT' and frame[1] == name:
                    events.append(frame[2])
                elif frame[0] == 'EOSE' and frame[1] == name:
                    await self.send('CLOSE', name)
                    return events
                elif frame[0] == 'CLOSED' and frame[1] == name:
                    if attempt == 1 and self.secret and frame[2].startswith('auth-required'):
                        while not self.challenge:
                            await self.receive()
                        break
                    raise Refused(frame[2])
                elif frame[0] == 'NOTICE' and 'restricted' in str(frame[1:]):
                    raise Refused(str(frame[1:]))


def run(main):
    """Runs a script's main coroutine; a refusal is a sentence and exit code 1."""
    try:
        return asyncio.run(main())
    except Refused as refused:
        raise SystemExit(f'refused: {refused}')
