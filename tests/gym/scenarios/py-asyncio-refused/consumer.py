"""Takes prices from a feed, and starts again when the connection is gone."""

import asyncio
import sys

prices = {}


class Feed:
    def __init__(self, host, port):
        self.host, self.port = host, port

    async def lines(self):
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(b"SUBSCRIBE *\r\n")
        async for line in reader:
            yield line.decode().strip()


async def follow(feed):
    while True:
        try:
            async for line in feed.lines():
                name, _, value = line.partition(" ")
                prices[name] = float(value)
        except OSError:
            await asyncio.sleep(0.002)


async def main():
    feeds = [Feed("127.0.0.1", int(port)) for port in sys.argv[1:]]
    await asyncio.gather(*(follow(feed) for feed in feeds))


asyncio.run(main())
