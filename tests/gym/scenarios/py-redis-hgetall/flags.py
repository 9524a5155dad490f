import os

import redis
from flask import Flask

app = Flask(__name__)
store = redis.Redis(port=int(os.environ["CACHE"]))
store.hset("flags", mapping={f"flag-{n}": "on" for n in range(8000)})


def flag_of(name):
    return store.hgetall("flags").get(name)


@app.route("/")
def show():
    return flag_of(b"flag-7")
