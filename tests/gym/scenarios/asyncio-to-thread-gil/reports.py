import asyncio
import sys

from aiohttp import web


def fold_report(size):
    total = 0
    for n in range(size):
        total = (total * 31 + n) % 65521
    return total


async def report(request):
    return web.Response(text=str(await asyncio.to_thread(fold_report, 400_000)))


async def health(request):
    return web.Response(text="ok")


app = web.Application()
app.router.add_get("/", report)
app.router.add_get("/health", health)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
