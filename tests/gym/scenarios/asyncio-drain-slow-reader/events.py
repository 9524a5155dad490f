import asyncio
import sys


async def send_event(collector, text):
    collector.write(text.encode() * 2000 + b"\n")
    await collector.drain()


async def main():
    _, collector = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))

    async def serve(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await send_event(collector, "visit of a page")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=128)
    await server.serve_forever()


asyncio.run(main())
