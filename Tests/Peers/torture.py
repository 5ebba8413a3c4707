#!/usr/bin/env python3
"""torture.py SKEP RELAY KILLS SEED: kill -9 of a real `skep` while it writes, sends and receives OK.

RELAY is `nostr-relay` (over SQLite) or `local-relay`. Each kill hits a `skep chat` at a moment drawn from the seed: a
quarter from the whole of a run that starts with its lines already waiting, the rest from the time in which a connected
chat writes, sends and hears the answers. After each kill the store must verify. In the end every message of the log,
and every one that was shown as written, must be at the relay exactly once, and each group must have arrived in the
order in which it was written, both as an independent subscriber saw it and by the events' dates.

Prints one JSON summary; the exit code is 1 where a rule was broken.
"""
import asyncio, json, os, random, select, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time

import websockets
from peer import Peer, sign

program, relay_kind, kills_wanted, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
here = os.path.dirname(os.path.abspath(__file__))
dice = random.Random(seed)
scratch = tempfile.mkdtemp(prefix='skep-torture-')
environment = {**os.environ, 'SKEP_HOME': scratch + '/home', 'NO_COLOR': '1'}
CHANNELS = ['torture-a', 'torture-b']
MESSAGES = 4
problems = []


def skep(*arguments, seconds=120):
    run = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=seconds,
                         stdin=subprocess.DEVNULL)
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{')]
    return run.returncode, rows, run.stderr


def check(is_true, what):
    if not is_true:
        problems.append(what)
        print(f'broken: {what}', file=sys.stderr, flush=True)


class Watcher(threading.Thread):
    """An independent subscriber: the order in which the relay showed the events of one author."""

    def __init__(self, url, author):
        super().__init__(daemon=True)
        self.url, self.author, self.seen, self.ready = url, author, [], threading.Event()

    def run(self):
        try:
            asyncio.run(self.watch())
        except websockets.ConnectionClosed:
            # The relay is stopped at the end; what was not seen by then is found missing.
            pass

    async def watch(self):
        async with Peer(self.url) as peer:
            await peer.send('REQ', 'watch', {'authors': [self.author], 'kinds': [9], 'since': int(time.time()) - 5})
            while True:
                frame = await peer.receive(86400)
                if frame[0] == 'EOSE':
                    self.ready.set()
                elif frame[0] == 'EVENT' and frame[2]['id'] not in self.seen:
                    self.seen.append(frame[2]['id'])


class Chat:
    """One `skep chat --json`, killed at a moment if it still lives then."""

    def __init__(self):
        self.process = subprocess.Popen([program, 'chat', '--json'], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.start, self.buffer, self.rows, self.deadline, self.was_killed = time.monotonic(), b'', [], None, False

    def say(self, text):
        try:
            self.process.stdin.write((text + '\n').encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def row(self, seconds=60):
        """The next row, or None at the end."""
        limit = time.monotonic() + seconds
        while b'\n' not in self.buffer:
            now = time.monotonic()
            if self.deadline is not None and not self.was_killed and now >= self.deadline:
                self.was_killed = True
                os.kill(self.process.pid, signal.SIGKILL)
            if now > limit:
                raise SystemExit('the chat said nothing for a minute')
            wait = min(limit, self.deadline) if self.deadline is not None and not self.was_killed else limit
            if not select.select([self.process.stdout], [], [], max(0, wait - now))[0]:
                continue
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return None
            self.buffer += piece
        line, self.buffer = self.buffer.split(b'\n', 1)
        row = json.loads(line)
        self.rows.append(row)
        return row

    def until_done(self):
        """The rows up to the end of one command's answer; None where the chat ended first."""
        answer = []
        while (row := self.row()) is not None:
            answer.append(row)
            if row.get('type') == 'done':
                return answer
        return None

    def finish(self):
        while self.row() is not None:
            pass
        return self.process.wait()


def connected(number, channel, fraction, length):
    """Writes in step with the answers, once the channel is live. Returns the chat and how long the work took."""
    chat = Chat()
    for line in (f'/open {channel}', '/wait live'):
        chat.say(line)
        if chat.until_done() is None:
            raise SystemExit('the chat ended before it was live')
    start = time.monotonic()
    chat.deadline = None if fraction is None else start + fraction * length
    first = None
    for message in range(MESSAGES):
        text = f'round {number} message {message}'
        chat.say(f'/reply {first} {text}' if message == 2 and first else text)
        answer = chat.until_done()
        if answer is None:
            break
        first = first or next((row['id'] for row in answer if row.get('type') == 'message'), None)
    chat.say('/wait outbox')
    chat.until_done()
    took = time.monotonic() - start
    chat.say('/quit')
    chat.finish()
    return chat, took


def waiting(number, channel, fraction, length):
    """All lines are there before the program starts, so that it writes while it connects."""
    chat = Chat()
    chat.deadline = None if fraction is None else chat.start + fraction * length
    chat.say(f'/open {channel}')
    for message in range(MESSAGES):
        chat.say(f'round {number} message {message}')
    chat.say('/wait outbox')
    chat.say('/quit')
    chat.finish()
    return chat, time.monotonic() - chat.start


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def start_relay(port):
    command = ([f'{here}/nostr-relay.sh', 'sqlite', str(port), scratch + '/relay'] if relay_kind == 'nostr-relay'
               else [sys.executable, f'{here}/local-relay.py', str(port), '--lmdb', scratch + '/relay'])
    relay = subprocess.Popen(command, env={**os.environ, 'MAX_LIMIT': '500'}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([sys.executable, f'{here}/wait-port.py', str(port), '30'], check=True, stdout=subprocess.DEVNULL)
    return relay


async def found_groups(url):
    secret = '%064x' % 11
    async with Peer(url) as peer:
        # In seconds of their own: with only as many events as one second has, no page could prove that second.
        for age, channel in enumerate(CHANNELS):
            await peer.send('EVENT', sign(secret, 9, [['h', channel]], f'the first message of {channel}',
                                          int(time.time()) - 3600 * (age + 1)))
            await peer.receive()


def tortured(url, watcher):
    phases = {'before the first commit': 0, 'writing': 0, 'sending': 0, 'all sent': 0}
    in_flight, rounds, kills, known, shown = 0, 0, 0, 0, set()
    lengths = {connected: [], waiting: []}

    def look():
        code, rows, errors = skep('verify', '--json')
        check(code == 0 and rows and rows[-1]['rejected'] == 0, f'verify after round {rounds}: exit {code} {rows} {errors}')
        return skep('outbox', 'list', '--all', '--json')[1]

    def play(way, fraction):
        nonlocal rounds, known
        rounds += 1
        chat, took = way(rounds, dice.choice(CHANNELS), fraction, statistics.median(lengths[way] or [0]))
        for row in chat.rows:
            if row.get('type') == 'message' and str(row['text']).startswith(f'round {rounds} '):
                shown.add(row['id'])
        rows = look()
        new = [row for row in rows if int(row['id']) > known]
        known = max([known] + [int(row['id']) for row in rows])
        return chat, took, new

    for _ in range(3):
        for way in lengths:
            lengths[way].append(play(way, None)[1])
    while kills < kills_wanted and rounds < 3 * kills_wanted + 10:
        chat, took, new = play(waiting if dice.random() < 0.25 else connected, dice.random())
        if not chat.was_killed or chat.process.returncode != -signal.SIGKILL:
            continue
        kills += 1
        states = [row['state'] for row in new]
        if not new: phases['before the first commit'] += 1
        elif len(new) < MESSAGES: phases['writing'] += 1
        elif any(state != 'sent' for state in states): phases['sending'] += 1
        else: phases['all sent'] += 1
        in_flight += 'sending' in states or 'unknown' in states
    return dict(kills=kills, rounds=rounds, phases=phases, with_a_message_in_flight=in_flight,
                seconds_of_a_run={way.__name__: round(statistics.median(times), 3) for way, times in lengths.items()}), shown


def judged(url, key, watcher, shown):
    for _ in range(5):
        code, rows, errors = skep('sync', '--once', '--json', '--quiet')
        if code == 0 and not skep('outbox', 'list', '--json')[1]:
            break
    check(code == 0, f'the last sync: exit {code} {rows} {errors}')
    waiting_rows = skep('outbox', 'list', '--json')[1]
    check(not waiting_rows, f'the outbox is not empty: {waiting_rows}')
    outbox = skep('outbox', 'list', '--all', '--json')[1]
    written = {row['event_id']: int(row['id']) for row in outbox}
    pages = subprocess.run([sys.executable, f'{here}/page.py', url, json.dumps({'authors': [key], 'kinds': [9]}), '--events'],
                           capture_output=True, text=True, check=True).stdout
    held = {event['id']: event for event in map(json.loads, pages.splitlines())}
    contents = [event['content'] for event in held.values()]
    check(set(held) == set(written), f'missing at the relay: {sorted(set(written) - set(held))}, '
                                     f'more than was written: {sorted(set(held) - set(written))}')
    check(len(contents) == len(set(contents)), f'{len(contents) - len(set(contents))} messages are there twice')
    check(shown <= set(held), f'shown as written and not at the relay: {sorted(shown - set(held))}')
    limit = time.monotonic() + 20
    while not set(held) <= set(watcher.seen) and time.monotonic() < limit:
        time.sleep(0.1)
    check(set(held) <= set(watcher.seen), 'the subscriber did not see all of it')
    for channel in CHANNELS:
        mine = {i for i, event in held.items() if ['h', channel] in event['tags']} & set(written)
        arrived = [written[i] for i in watcher.seen if i in mine]
        check(arrived == sorted(arrived), f'{channel} did not arrive in the order of writing: '
              + str([pair for pair in zip(arrived, arrived[1:]) if pair[0] > pair[1]]))
        dated = [held[i]['created_at'] for i in sorted(mine, key=written.get)]
        check(dated == sorted(dated), f'{channel} is dated in another order than it was written in')
    code, rows, errors = skep('verify', '--json')
    check(code == 0, f'the last verify: exit {code} {rows} {errors}')
    return dict(written=len(written), shown_as_written=len(shown), at_the_relay=len(held),
                sent_more_than_once=sum(1 for row in outbox if row['attempts'] > 1))


def main():
    start = time.monotonic()
    port = free_port()
    url = f'ws://127.0.0.1:{port}'
    relay = start_relay(port)
    try:
        asyncio.run(found_groups(url))
        key = skep('key', 'new', '--json')[1][-1]['pubkey']
        code, rows, errors = skep('mirror', url, '--all', '--json', '--quiet')
        check(code == 0, f'the first mirror: exit {code} {rows} {errors}')
        watcher = Watcher(url, key)
        watcher.start()
        watcher.ready.wait(30)
        figures, shown = tortured(url, watcher)
        figures.update(judged(url, key, watcher, shown))
        after = figures['kills'] - figures['phases']['before the first commit']
        check(figures['kills'] == kills_wanted, f'only {figures["kills"]} kills hit')
        check(2 * after >= figures['kills'], 'less than half of the kills came after the first commit')
        print(json.dumps(dict(relay=relay_kind, seed=seed, **figures, after_the_first_commit=after, problems=problems,
                              seconds=round(time.monotonic() - start))))
    finally:
        os.kill(relay.pid, signal.SIGKILL)
        relay.wait()
        if not problems:
            shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(1 if problems else 0)


main()
