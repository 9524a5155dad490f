import os
import zlib

import redis

cache = redis.Redis(port=int(os.environ["CACHE"]))
while True:
    _, number = cache.brpop("jobs")
    cache.set(f"sum:{int(number) % 100}", zlib.crc32(number * 1000))
