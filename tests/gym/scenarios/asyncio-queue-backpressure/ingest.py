import asyncio
import sys


async def drain_events(events):
    while True:
        await events.get()
        await asyncio.sleep(0.1)


async def accept_event(events, text):
    await events.put(text)


async def main():
    events = asyncio.Queue(4)

    async def handle(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await accept_event(events, head)
                writer.write(b"HTTP/1.1 202 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    consumer = asyncio.create_task(drain_events(events))
    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(server.serve_forever(), consumer)


asyncio.run(main())
