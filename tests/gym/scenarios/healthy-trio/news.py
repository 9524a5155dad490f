import sys

import httpx
import trio

client = httpx.AsyncClient()
feeds = {}


async def refresh():
    while True:
        feeds["news"] = await trio.to_thread.run_sync(lambda: sorted(range(2000)))
        await trio.sleep(0.5)


async def answer(stream):
    async with stream:
        while await stream.receive_some(4096):
            body = (await client.get(f"http://127.0.0.1:{sys.argv[2]}/")).content
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refresh)
        await trio.serve_tcp(answer, int(sys.argv[1]))


trio.run(main)
