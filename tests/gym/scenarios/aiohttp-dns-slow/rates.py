import asyncio
import sys

import aiohttp
from aiohttp import web


async def fetch_rate(request):
    number = request.match_info["number"]
    connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver(), use_dns_cache=False, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            async with session.get(f"http://rates-{number}.example.test:{sys.argv[2]}/") as answer:
                return web.Response(text=await answer.text())
        except aiohttp.ClientError:
            return web.Response(status=502)


app = web.Application()
app.router.add_get("/rate/{number}", fetch_rate)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
