import asyncio
import sys

ready = False


async def watch_flag():
    while not ready:
        await asyncio.sleep(0)


async def handle(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    watch = [asyncio.create_task(watch_flag()) for _ in range(20)]
    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(server.serve_forever(), *watch)


asyncio.run(main())
