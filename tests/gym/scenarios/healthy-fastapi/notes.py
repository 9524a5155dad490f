import asyncio
import sys

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.get("/")
async def show_note():
    await asyncio.sleep(0.005)
    return {"note": "milk"}


@app.get("/old")
def show_old_note():
    return {"note": "bread"}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
