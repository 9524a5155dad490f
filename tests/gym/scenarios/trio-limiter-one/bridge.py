import sys
import urllib.request

import trio

limiter = trio.CapacityLimiter(1)


def read_legacy():
    return urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/record").read()


async def answer(stream):
    async with stream:
        while await stream.receive_some(4096):
            body = await trio.to_thread.run_sync(read_legacy, limiter=limiter)
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


trio.run(trio.serve_tcp, answer, int(sys.argv[1]))
