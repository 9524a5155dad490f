import asyncio
import subprocess
import sys


def resize():
    subprocess.run(["sleep", "0.2"])


async def serve(reader, writer):
    while await reader.readline():
        while (await reader.readline()).strip():
            pass
        resize()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
