import sys

import requests
from aiohttp import web


def fetch_price():
    return requests.get(f"http://127.0.0.1:{sys.argv[2]}/price", timeout=30).text


async def show_price(request):
    return web.Response(text=fetch_price())


app = web.Application()
app.router.add_get("/", show_price)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
