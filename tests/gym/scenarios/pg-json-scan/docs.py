import sys

import uvicorn
from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool

app = FastAPI()
pool = AsyncConnectionPool(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop", min_size=2, max_size=2, open=False)


@app.on_event("startup")
async def begin():
    await pool.open()


async def search_docs(sku):
    async with pool.connection() as db:
        rows = await db.execute("select id from docs where body->>'sku' = %s", (sku,))
        return await rows.fetchall()


@app.get("/")
async def search():
    return len(await search_docs("s77"))


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
