import sys

import trio


async def quote_fare(lock):
    async with lock:
        stream = await trio.open_tcp_stream("127.0.0.1", int(sys.argv[2]))
        async with stream:
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return await stream.receive_some(4096)


async def main():
    lock = trio.Lock()

    async def serve(stream):
        async with stream:
            while await stream.receive_some(4096):
                await quote_fare(lock)
                await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    await trio.serve_tcp(serve, int(sys.argv[1]), host="127.0.0.1")


trio.run(main)
