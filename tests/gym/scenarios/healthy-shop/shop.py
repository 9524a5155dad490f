import os

import redis
from flask import Flask

app = Flask(__name__)
cache = redis.Redis(port=int(os.environ["CACHE"]))


@app.route("/<int:number>")
def article(number):
    page = cache.get(f"page:{number % 50}")
    if page is None:
        page = f"article {number}" * 20
        cache.set(f"page:{number % 50}", page)
    if number % 10 == 0:
        cache.lpush("jobs", number)
    return page
