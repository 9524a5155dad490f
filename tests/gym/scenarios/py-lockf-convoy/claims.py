import fcntl
import os
import sys
import time


def claim_job(file):
    fcntl.lockf(file, fcntl.LOCK_EX)
    time.sleep(0.02)
    fcntl.lockf(file, fcntl.LOCK_UN)


for _ in range(5):
    if os.fork() == 0:
        with open(sys.argv[1], "w") as file:
            while True:
                claim_job(file)
os.wait()
