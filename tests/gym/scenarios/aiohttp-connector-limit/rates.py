import sys

import aiohttp
from aiohttp import web


async def connect(app):
    app["client"] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=2))
    yield
    await app["client"].close()


async def rate(request):
    async with request.app["client"].get(f"http://127.0.0.1:{sys.argv[2]}/rate") as answer:
        return web.Response(body=await answer.read())


app = web.Application()
app.cleanup_ctx.append(connect)
app.router.add_get("/", rate)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
