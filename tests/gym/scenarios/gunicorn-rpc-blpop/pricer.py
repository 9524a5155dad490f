import sys
import time

import redis

bus = redis.Redis(port=int(sys.argv[1]))


def consult_supplier(article):
    time.sleep(0.25)
    return str(len(article) * 7)


while True:
    _, job = bus.blpop("prices")
    article, reply = job.decode().split()
    bus.rpush(reply, consult_supplier(article))
