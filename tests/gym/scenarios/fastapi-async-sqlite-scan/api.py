import os

from fastapi import FastAPI

from store import Store

app = FastAPI()
store = Store(os.environ["ARTICLES"])


@app.get("/search")
async def search_articles(q: str):
    return {"hits": store.search(q)}


@app.get("/health")
async def health():
    return "ok"
