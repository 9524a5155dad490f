import asyncio
import sys


class Accounts:
    def __init__(self):
        self.cash, self.bank = asyncio.Lock(), asyncio.Lock()

    async def move_in(self):
        async with self.cash:
            await asyncio.sleep(0.01)
            async with self.bank:
                return b"in"

    async def move_out(self):
        async with self.bank:
            await asyncio.sleep(0.01)
            async with self.cash:
                return b"ou"


async def main():
    accounts = Accounts()

    async def handle(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                text = await (accounts.move_in() if b"/in" in head else accounts.move_out())
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + text)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
