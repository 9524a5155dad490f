"""slow_server.py PORT SECONDS: another service, which answers each request after so long. Asyncio."""

import asyncio
import ctypes
import sys

ctypes.CDLL(None).prctl(15, b"downstream", 0, 0, 0)


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(float(sys.argv[2]))
            close = b"connection: close" in head.lower()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
                + (b"Connection: close\r\n" if close else b"")
                + b"\r\n7.5"
            )
            await writer.drain()
            if close:
                break
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=512)
    await server.serve_forever()


asyncio.run(main())
