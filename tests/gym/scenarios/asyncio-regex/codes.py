import asyncio
import re
import sys

CODE = re.compile(r"^(\w+-?)+:$")


def check_code(text):
    return bool(CODE.match(text))


async def serve(reader, writer):
    while await reader.readline():
        while (await reader.readline()).strip():
            pass
        check_code("a1b2c3d4e5f6a7b8c9d0e1")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
