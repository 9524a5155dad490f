import asyncio
import sys
import urllib.request


def ask_stock():
    return urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/stock").read()


async def serve(reader, writer):
    while await reader.readline():
        while (await reader.readline()).strip():
            pass
        ask_stock()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
