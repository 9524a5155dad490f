import sys
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool

pool = AsyncConnectionPool(
    f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop", min_size=2, max_size=2, open=False
)


@asynccontextmanager
async def lifespan(app):
    await pool.open()
    yield


app = FastAPI(lifespan=lifespan)


async def read_orders():
    async with pool.connection() as db:
        cursor = await db.execute("select pg_sleep(0.3), 'orders'")
        return (await cursor.fetchone())[1]


@app.get("/orders")
async def orders():
    return {"orders": await read_orders()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
