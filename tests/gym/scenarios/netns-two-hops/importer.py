import fcntl
import sys
import time


def import_feed(lock):
    fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(0.4)
    fcntl.flock(lock, fcntl.LOCK_UN)


with open(sys.argv[1], "a") as lock:
    while True:
        import_feed(lock)
        time.sleep(0.01)
