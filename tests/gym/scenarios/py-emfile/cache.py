import time

kept = []


def open_cache(name):
    kept.append(open(name))


while True:
    try:
        open_cache("cache.py")
    except OSError:
        pass
    time.sleep(0.05)
