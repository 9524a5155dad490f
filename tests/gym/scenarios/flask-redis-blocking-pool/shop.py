import os

import redis
from flask import Flask

app = Flask(__name__)
pool = redis.BlockingConnectionPool(port=int(os.environ["CACHE"]), max_connections=2, timeout=30)
store = redis.Redis(connection_pool=pool)


def read_basket():
    store.blpop("baskets", timeout=0.3)


@app.route("/")
def basket():
    read_basket()
    return "empty"
