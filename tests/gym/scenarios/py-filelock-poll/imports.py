import fcntl
import multiprocessing
import sys
import time


def take_turn(lock):
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)


def import_part(path):
    while True:
        with open(path, "a") as lock:
            take_turn(lock)
            time.sleep(0.9)


if __name__ == "__main__":
    parts = [multiprocessing.Process(target=import_part, args=(sys.argv[1],)) for _ in range(3)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
