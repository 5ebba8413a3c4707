#!/usr/bin/env python3
"""memory.py SKEP WAY [COUNT]: whether the memory of a running `skep` stays flat.

WAY is `requests` (a mirror that asks for COUNT pages of what it has already) or `duplicates` (a chat whose live feed
brings COUNT events that it has already). The resident memory after a fifth of them is compared with that at the end;
the exit code is 1 where it has grown by more than a tenth. Prints one JSON line of figures, in KiB.
"""
import asyncio, json, os, shutil, subprocess, sys, tempfile, time

import websockets
from peer import sign

program, way = sys.argv[1], sys.argv[2]
wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000 if way == 'requests' else 1_000_000
scratch = tempfile.mkdtemp(prefix='skep-memory-')
environment = {**os.environ, 'SKEP_HOME': scratch + '/home', 'NO_COLOR': '1'}
newest = int(time.time()) - 100
events = [sign('%064x' % 9, 9, [['h', 'den']], f'message {n}', newest - n)
          for n in range(wanted // 3 if way == 'requests' else 2000)]


class Relay:
    """Newest first, two events a page, or an endless live feed."""
    count = 0

    async def serve(self, socket):
        async for text in socket:
            frame = json.loads(text)
            if frame[0] != 'REQ':
                continue
            asked = frame[2]
            page = [] if '#h' not in asked else self.page(asked)
            for event in page:
                await socket.send(json.dumps(['EVENT', frame[1], event]))
            await socket.send(json.dumps(['EOSE', frame[1]]))
            if way == 'requests':
                self.count += 1
            elif '#h' in asked and asked.get('limit', 0) <= 20 and 'until' not in asked:
                self.flood = asyncio.create_task(self.send_all(socket, frame[1]))

    def page(self, asked):
        if way == 'duplicates':
            return events[:1] if asked.get('until', newest) >= newest >= asked.get('since', 0) else []
        first = max(0, newest - asked.get('until', newest))
        return [event for event in events[first:first + 2] if event['created_at'] >= asked.get('since', 0)]

    async def send_all(self, socket, name):
        lines = [f'["EVENT",{json.dumps(name)},{json.dumps(event)}]' for event in events]
        while self.count < wanted:
            for line in lines:
                await socket.send(line)
            self.count += len(lines)


def resident(pid):
    with open(f'/proc/{pid}/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') // 1024


async def run(*arguments):
    process = await asyncio.create_subprocess_exec(program, *arguments, env=environment, stdin=subprocess.DEVNULL,
                                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await process.wait()


async def main():
    relay = Relay()
    server = await websockets.serve(relay.serve, '127.0.0.1', 0, compression=None, ping_interval=None)
    url = f'ws://127.0.0.1:{server.sockets[0].getsockname()[1]}'
    mirror = ['mirror', url, '--group', 'den', '--quiet']
    await run('key', 'new')
    await run(*mirror)
    relay.count = 0
    command = [program, *mirror, '--full'] if way == 'requests' else [program, 'chat', '--json']
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    marks = []
    try:
        while process.poll() is None and relay.count < wanted:
            await asyncio.sleep(0.1)
            if process.poll() is None and (size := resident(process.pid)):
                marks.append((relay.count, size))
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    early = next(size for count, size in marks if count >= marks[-1][0] / 5)
    late = marks[-1][1]
    print(json.dumps(dict(way=way, count=marks[-1][0], early=early, late=late, growth=round(late / early - 1, 3))))
    sys.exit(0 if marks[-1][0] >= 0.9 * wanted and late <= 1.1 * early else 1)


asyncio.run(main())
