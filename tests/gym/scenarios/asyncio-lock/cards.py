import asyncio
import sys

lock = asyncio.Lock()


async def ask_bank():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    writer.write(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    await reader.read(4096)
    writer.close()


async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            async with lock:
                await ask_bank()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
