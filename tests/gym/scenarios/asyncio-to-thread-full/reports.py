import asyncio
import sys
from urllib.request import urlopen

from aiohttp import web


def load_report(number):
    with urlopen(f"http://127.0.0.1:{sys.argv[2]}/archive/{number}", timeout=20) as answer:
        return answer.read()


def count_words(text):
    return len(text.split())


async def show(request):
    text = await asyncio.to_thread(load_report, 7)
    return web.Response(text=str(count_words(text)))


app = web.Application()
app.router.add_get("/", show)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
