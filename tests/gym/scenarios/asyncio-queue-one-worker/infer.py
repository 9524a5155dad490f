import asyncio
import sys

import httpx
from aiohttp import web

jobs = asyncio.Queue()
client = httpx.AsyncClient(timeout=30)


async def ask_model(text):
    return (await client.get(f"http://127.0.0.1:{sys.argv[2]}/{text}")).text


async def work():
    while True:
        text, reply = await jobs.get()
        reply.set_result(await ask_model(text))


async def infer(request):
    reply = asyncio.get_running_loop().create_future()
    await jobs.put(("hello", reply))
    return web.Response(text=await reply)


async def begin(app):
    app["worker"] = asyncio.create_task(work())


app = web.Application()
app.router.add_get("/", infer)
app.on_startup.append(begin)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
