import asyncio
import sys

permits = asyncio.Semaphore(2)


async def ask_partner():
    async with permits:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = await reader.read()
        writer.close()
        return text


async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            await ask_partner()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
