import sys
from concurrent.futures import ThreadPoolExecutor

import redis

client = redis.Redis(port=int(sys.argv[1]))


def settle(invoice):
    import time

    time.sleep(0.2)


def charge(invoice):
    with client.lock("ledger", timeout=30, sleep=0.05):
        settle(invoice)


with ThreadPoolExecutor(6) as pool:
    list(pool.map(charge, range(100000)))
