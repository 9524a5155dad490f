import sys
import threading
import time

import redis


def count_visit():
    with redis.Redis(port=int(sys.argv[1]), single_connection_client=True) as store:
        store.incr("visits")
        time.sleep(0.5)


def work():
    while True:
        try:
            count_visit()
        except redis.RedisError:
            time.sleep(0.01)


for number in range(12):
    threading.Thread(target=work).start()
