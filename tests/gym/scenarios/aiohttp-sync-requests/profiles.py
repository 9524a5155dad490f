import sys

import requests
from aiohttp import web

session = requests.Session()


async def load_profile(name):
    return session.get(f"http://127.0.0.1:{sys.argv[2]}/{name}", timeout=20).text


def greet(text):
    return f"hello {text}"


async def show(request):
    return web.Response(text=greet(await load_profile("anna")))


app = web.Application()
app.router.add_get("/", show)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
