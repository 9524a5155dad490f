import sys

import redis

store = redis.Redis(port=int(sys.argv[1]))


def load_stock():
    return store.hgetall("stock")


def count_item(name):
    return int(load_stock().get(name, 0))


while True:
    _, name = store.blpop("jobs")
    store.rpush("answers", count_item(name))
    store.ltrim("answers", -10, -1)
