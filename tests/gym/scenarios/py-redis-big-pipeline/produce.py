import sys
import time

import redis

store = redis.Redis(port=int(sys.argv[1]))
store.hset("stock", mapping={f"item{n}": n for n in range(40_000)})
while True:
    if store.llen("jobs") < 20:
        store.rpush("jobs", "item7")
    time.sleep(0.01)
