#!/usr/bin/env python3
"""A relay that misbehaves as it is told, on 127.0.0.1, with nothing but Python's own library.

misbehaving-relay.py EVENTS.jsonl RULES.json

Everything that comes and goes is told on stdout, one JSON object a line, the address first. Lines on
stdin change it while it runs: {"add": EVENT}, {"rules": {...}}, {"drop": true}. It checks no event
and knows nothing of the project's own code.
"""
import base64, hashlib, json, os, socket, struct, sys, threading, time

LOCK = threading.RLock()
LINKS = []


def tell(**row):
    with LOCK:
        sys.stdout.write(json.dumps(row, separators=(',', ':')) + '\n')
        sys.stdout.flush()


class Dropped(Exception):
    pass


class Store:
    def __init__(self, path):
        self.events = [json.loads(line) for line in open(path)] if os.path.exists(path) else []

    def page(self, asked, rules):
        """What a REQ with one filter gets: newest first, ties by id, cut at the relay's cap."""
        f = dict(asked)
        if rules.get('until_zero_is_none') and f.get('until') == 0: del f['until']
        if rules.get('ignores_until'): f.pop('until', None)
        found = [e for e in self.events if matches(e, f)]
        found.sort(key=lambda e: (-e['created_at'], e['id']))
        if rules.get('keyset') and 'before_id' in f and 'until' in f:
            found = [e for e in found if e['created_at'] < f['until'] or e['id'] > f['before_id']]
        return found[:min(f.get('limit', 10 ** 9), rules.get('cap', 500))]


def matches(e, f):
    for key, value in f.items():
        if key == 'ids' and e['id'] not in value: return False
        if key == 'authors' and e['pubkey'] not in value: return False
        if key == 'kinds' and e['kind'] not in value: return False
        if key == 'since' and e['created_at'] < value: return False
        if key == 'until' and e['created_at'] > value: return False
        if key[0] == '#' and not any(t[0] == key[1:] and len(t) > 1 and t[1] in value for t in e['tags']): return False
    return True


class Negentropy:
    """The other side of NIP-77, version 1, as plainly as it can be done: a range that differs is answered by all of its ids."""

    def __init__(self, events):
        self.items = sorted((e['created_at'], bytes.fromhex(e['id'])) for e in events)

    def answer(self, message):
        if message[:1] != b'\x61': return b'\x61'
        self.data, self.at, self.time = message, 1, 0
        out, lower = b'', (0, b'')
        while self.at < len(self.data):
            upper, bound = self.bound()
            mode = self.number()
            mine = [i for i in self.items if lower <= i and (upper is None or i < upper)]
            if mode == 1:
                if self.bytes(16) == self.fingerprint(mine): out += bound + b'\0'
                else: out += bound + self.list(mine)
            elif mode == 2:
                self.bytes(32 * self.number())
                out += bound + self.list(mine)
            else: out += bound + b'\0'
            lower = upper
        return b'\x61' + out

    def bound(self):
        """The end of a range, and the bytes that say it again."""
        start = self.at
        delta = self.number()
        if delta == 0: stamp = None
        else: self.time = stamp = self.time + delta - 1
        prefix = self.bytes(self.number())
        return (None if stamp is None else (stamp, prefix)), self.data[start:self.at]

    def number(self):
        value = 0
        while True:
            byte = self.bytes(1)[0]
            value = value << 7 | byte & 127
            if not byte & 128: return value

    def bytes(self, count):
        self.at += count
        if self.at > len(self.data): raise ValueError('cut short')
        return self.data[self.at - count:self.at]

    @staticmethod
    def varint(value):
        out = bytes([value & 127])
        while value := value >> 7: out = bytes([value & 127 | 128]) + out
        return out

    def list(self, items): return b'\x02' + self.varint(len(items)) + b''.join(i for _, i in items)

    def fingerprint(self, items):
        total = sum(int.from_bytes(i, 'little') for _, i in items) % 2 ** 256
        return hashlib.sha256(total.to_bytes(32, 'little') + self.varint(len(items))).digest()[:16]


class Link:
    """One connection: WebSocket by hand, then whatever the rules say."""
    count = 0
    # Of all connections together.
    drops = 0
    sent = []

    def __init__(self, sock, store, rules):
        self.sock, self.store, self.rules = sock, store, rules
        self.subscriptions, self.used, self.asked = {}, set(), 0
        self.challenge, self.pubkey, self.is_open, self.sessions = None, None, False, {}
        with LOCK:
            Link.count += 1
            self.number = Link.count

    # The socket

    def run(self):
        try:
            if not self.shake_hands(): return
            with LOCK: LINKS.append(self)
            self.is_open = True
            tell(type='open', link=self.number, at=time.time())
            self.greet()
            while True:
                text = self.read_message()
                frame = json.loads(text)
                tell(type='frame', link=self.number, at=time.time(), frame=frame)
                self.answer(frame)
        except (Dropped, OSError, ValueError):
            pass
        finally:
            with LOCK:
                if self in LINKS: LINKS.remove(self)
            if self.is_open: tell(type='close', link=self.number, at=time.time())
            self.sock.close()

    def shake_hands(self):
        head = b''
        while b'\r\n\r\n' not in head:
            chunk = self.sock.recv(4096)
            if not chunk: return False
            head += chunk
        lines = dict(l.split(': ', 1) for l in head.decode('latin1').split('\r\n')[1:] if ': ' in l)
        lines = {k.lower(): v for k, v in lines.items()}
        if 'sec-websocket-key' not in lines:
            body = json.dumps(self.rules.get('document', {})).encode()
            self.sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/nostr+json\r\nConnection: close\r\n'
                              b'Content-Length: %d\r\n\r\n' % len(body) + body)
            return False
        key = lines['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest())
        more = ''
        if 'sec-websocket-protocol' in lines:
            more = 'Sec-WebSocket-Protocol: ' + lines['sec-websocket-protocol'].split(',')[0].strip() + '\r\n'
        self.sock.sendall(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                          + more.encode() + b'Sec-WebSocket-Accept: ' + accept + b'\r\n\r\n')
        return True

    def read_exactly(self, count):
        data = b''
        while len(data) < count:
            chunk = self.sock.recv(count - len(data))
            if not chunk: raise Dropped
            data += chunk
        return data

    def read_message(self):
        message = b''
        while True:
            first, second = self.read_exactly(2)
            length = second & 127
            if length == 126: length = struct.unpack('>H', self.read_exactly(2))[0]
            elif length == 127: length = struct.unpack('>Q', self.read_exactly(8))[0]
            mask = self.read_exactly(4) if second & 128 else b'\0\0\0\0'
            data = self.read_exactly(length)
            data = bytes(b ^ mask[i & 3] for i, b in enumerate(data))
            kind = first & 15
            if kind == 8: raise Dropped
            if kind == 9: self.write(10, data)
            if kind in (0, 1, 2):
                message += data
                if first & 128: return message.decode()

    def write(self, kind, data):
        head = bytes([128 | kind])
        if len(data) < 126: head += bytes([len(data)])
        elif len(data) < 65536: head += bytes([126]) + struct.pack('>H', len(data))
        else: head += bytes([127]) + struct.pack('>Q', len(data))
        with LOCK: self.sock.sendall(head + data)

    def say(self, *frame):
        if frame[0] != 'EVENT': tell(type='answer', link=self.number, at=time.time(), frame=frame)
        self.write(1, json.dumps(frame, separators=(',', ':'), ensure_ascii=False).encode())

    def drop(self):
        try: self.sock.shutdown(socket.SHUT_RDWR)
        except OSError: pass
        raise Dropped

    # The protocol

    def greet(self):
        if self.rules.get('auth') == 'at once': self.ask_who()

    def ask_who(self):
        self.challenge = os.urandom(16).hex()
        self.say('AUTH', self.challenge)

    def answer(self, frame):
        kind = frame[0]
        if kind == 'AUTH':
            event = frame[1]
            self.pubkey = event['pubkey']
            self.say('OK', event['id'], True, '')
        elif kind == 'REQ': self.request(frame[1], frame[2:])
        elif kind == 'CLOSE': self.subscriptions.pop(frame[1], None)
        elif kind == 'EVENT': self.publish(frame[1])
        elif kind.startswith('NEG-'): self.reconcile(kind, frame)

    def over_budget(self):
        """Counts a REQ or EVENT against so many a second, over all connections."""
        budget = self.rules.get('budget')
        if not budget: return False
        now = time.time()
        with LOCK:
            Link.sent = [t for t in Link.sent if t > now - 1]
            if len(Link.sent) >= budget: return True
            Link.sent.append(now)
        return False

    def request(self, name, filters):
        rules = self.rules
        if rules.get('reused_ids_are_dead') and name in self.used: return
        self.used.add(name)
        if self.over_budget(): return self.say('CLOSED', name, 'rate-limited: quota exceeded; retry in 1s')
        if rules.get('auth') and self.pubkey is None:
            if self.challenge is None: self.ask_who()
            return self.say('CLOSED', name, 'auth-required: we only serve authenticated users')
        touches = lambda kinds: any(k in kinds for f in filters for k in f.get('kinds', []))
        if rules.get('notice_for_kindless') and any('kinds' not in f for f in filters):
            return self.say('NOTICE', 'ERROR: bad req: a filter needs kinds')
        if touches(rules.get('notice_for_kinds', [])):
            return self.say('NOTICE', 'ERROR: bad req: uninteresting kinds')
        self.asked += 1
        events = {}
        for f in filters:
            for e in self.store.page(f, rules): events.setdefault(e['id'], e)
        page = sorted(events.values(), key=lambda e: (-e['created_at'], e['id']))
        lasting = rules.get('drops_after', 10 ** 9)
        for e in page[:lasting]: self.say('EVENT', name, e)
        if len(page) > lasting: return self.drop()
        self.interrupt(name, page)
        self.subscriptions[name] = filters
        if touches(rules.get('endless_kinds', [])): return
        if self.asked > rules.get('endless_after', 10 ** 9): return
        self.say('EOSE', name)

    def interrupt(self, name, page):
        """Sends what the rules add before the end of the first page that has several events, and drops."""
        with LOCK:
            poison = self.rules.get('poison')
            if not poison or len(page) < 2 or Link.drops: return
            Link.drops += 1
        for e in poison: self.say('EVENT', name, e)
        self.drop()

    def publish(self, event):
        rules, text = self.rules, event['content']
        if self.over_budget():
            return self.say('OK', event['id'], False, 'rate-limited: quota exceeded; retry in 1s')
        # A list of refusals for a content is used up one by one; then the event is taken.
        refusals = rules.get('refusals', {}).get(text, [])
        if refusals:
            refusal = refusals[0] if rules.get('refuses_for_ever') else refusals.pop(0)
            if refusal.startswith('auth-required') and self.challenge is None: self.ask_who()
            return self.say('OK', event['id'], False, refusal)
        if not any(e['id'] == event['id'] for e in self.store.events): add(event)
        elif not rules.get('never_answers'): return self.say('OK', event['id'], True, 'duplicate: already have it')
        if not rules.get('never_answers'): self.say('OK', event['id'], True, '')

    def reconcile(self, kind, frame):
        form = self.rules.get('negentropy', 'notice')
        if kind == 'NEG-CLOSE' or form == 'silence': return
        if form == 'notice': self.say('NOTICE', 'ERROR: bad msg: negentropy disabled')
        elif form == 'closed': self.say('CLOSED', frame[1], 'unsupported: no negentropy')
        elif form == 'blocked': self.say('NEG-ERR', frame[1], 'blocked: too many query results')
        elif form == 'error': self.say('NEG-ERR', frame[1], 'closed: you took too long')
        elif form == 'garbled': self.say('NEG-MSG', frame[1], '7a7a7a7a')
        elif form == 'drop': self.drop()
        elif form == 'version': self.say('NEG-MSG', frame[1], '60')
        elif form == 'served':
            if kind == 'NEG-OPEN':
                self.sessions[frame[1]] = Negentropy([e for e in self.store.events if matches(e, frame[2])])
            message = bytes.fromhex(frame[3] if kind == 'NEG-OPEN' else frame[2])
            self.say('NEG-MSG', frame[1], self.sessions[frame[1]].answer(message).hex())


def add(event):
    with LOCK:
        STORE.events.append(event)
        listeners = [(l, n) for l in LINKS for n, fs in list(l.subscriptions.items()) if any(matches(event, f) for f in fs)]
    for link, name in listeners:
        try: link.say('EVENT', name, event)
        except OSError: pass


def control():
    for line in sys.stdin:
        order = json.loads(line)
        if 'add' in order: add(order['add'])
        if 'rules' in order: RULES.update(order['rules'])
        if order.get('drop'):
            with LOCK: links = list(LINKS)
            for link in links:
                try: link.sock.shutdown(socket.SHUT_RDWR)
                except OSError: pass
        tell(type='done')
    os._exit(0)


STORE = Store(sys.argv[1])
RULES = json.load(open(sys.argv[2]))
server = socket.create_server(('127.0.0.1', 0), backlog=64)
tell(type='listening', url='ws://127.0.0.1:%d' % server.getsockname()[1])
threading.Thread(target=control, daemon=True).start()
while True:
    sock, _ = server.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=Link(sock, STORE, RULES).run, daemon=True).start()
