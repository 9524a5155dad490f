import sys
import time

import redis

db = redis.Redis(port=int(sys.argv[1]))


def read_cart():
    return db.get("key:17")


while True:
    read_cart()
    time.sleep(0.01)
