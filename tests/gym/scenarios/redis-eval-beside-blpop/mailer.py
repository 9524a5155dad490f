import sys

import redis

queue = redis.Redis(port=int(sys.argv[1]))
while True:
    job = queue.blpop("mails", timeout=5)
    if job:
        print(job)
