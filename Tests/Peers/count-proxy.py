#!/usr/bin/env python3
"""count-proxy.py PORT TARGET FILE: passes connections on 127.0.0.1:PORT on to 127.0.0.1:TARGET and keeps in FILE how many bytes went by."""
import asyncio, os, sys
port, target, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
total = 0


async def pump(reader, writer):
    global total
    try:
        while data := await reader.read(65536):
            total += len(data)
            # Written before it is passed on: whoever has an answer finds it counted.
            with open(file + '.new', 'w') as out:
                out.write(str(total))
            os.replace(file + '.new', file)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def door(reader, writer):
    inner, outer = await asyncio.open_connection('127.0.0.1', target)
    await asyncio.gather(pump(reader, outer), pump(inner, writer))


async def main():
    async with await asyncio.start_server(door, '127.0.0.1', port) as server:
        await server.serve_forever()

asyncio.run(main())
