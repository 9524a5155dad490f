import asyncio
import sys


async def take(reader, writer):
    await reader.read()
    writer.close()


async def main():
    server = await asyncio.start_server(take, "127.0.0.1", int(sys.argv[1]), backlog=512)
    await server.serve_forever()


asyncio.run(main())
