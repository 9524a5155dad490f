"""Exchange rates over asyncio streams, with a limit on how fast the provider is asked."""

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(4)
last = 0.0


def throttle():
    """At most ten calls a second."""
    global last
    pause = last + 0.1 - time.monotonic()
    if pause > 0:
        time.sleep(pause)
    last = time.monotonic()


async def rate_of(path):
    throttle()
    return f"{len(path) * 0.37:.2f}\n"


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await rate_of(head.split(b" ")[1].decode())
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    for _ in range(4):
        await asyncio.get_running_loop().run_in_executor(pool, len, "")
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
