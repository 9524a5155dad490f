import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import uvicorn
from fastapi import FastAPI

app = FastAPI()
pool = ThreadPoolExecutor(8)
card_lock = threading.Lock()


def round_price(text):
    return round(float(text) * 1.19, 2)


def read_card():
    return urlopen(f"http://127.0.0.1:{sys.argv[2]}/card", timeout=20).read()


def price_of(item):
    with card_lock:
        card = read_card()
    return round_price(card)


@app.get("/")
async def price():
    return await asyncio.get_running_loop().run_in_executor(pool, price_of, 7)


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
