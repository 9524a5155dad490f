import random
import sys
import time

from aiohttp import web


def with_retries(work):
    for attempt in range(4):
        try:
            return work()
        except ValueError:
            time.sleep(0.03 * (attempt + 1))
    return 0


def read_balance():
    if random.random() < 0.6:
        raise ValueError
    return 42


async def balance(request):
    return web.Response(text=str(with_retries(read_balance)))


app = web.Application()
app.router.add_get("/balance", balance)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
