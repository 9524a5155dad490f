import random
import sys
import threading

import redis
from flask import Flask

app = Flask(__name__)
pool = redis.Redis(port=int(sys.argv[2]))
for _ in range(60):
    pool.rpush("scores", *(random.randrange(10**6) for _ in range(1000)))


def best_scores():
    return pool.sort("scores", start=0, num=10, desc=True)


@app.route("/")
def board():
    return b",".join(best_scores())


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
