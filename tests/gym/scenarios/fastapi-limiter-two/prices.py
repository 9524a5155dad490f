import os
from contextlib import asynccontextmanager
from urllib.request import urlopen

import anyio.to_thread
from fastapi import FastAPI


@asynccontextmanager
async def lifespan(app):
    anyio.to_thread.current_default_thread_limiter().total_tokens = 2
    yield


app = FastAPI(lifespan=lifespan)


@app.get("/prices/{number}")
def price_of(number: int):
    with urlopen(os.environ["BANK"]) as answer:
        return {"price": float(answer.read())}
