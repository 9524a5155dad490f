"""Jobs come now and then; eight workers are more than enough."""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

DONE = 0
LOCK = threading.Lock()


def thumbnail(number):
    global DONE
    digest = hashlib.pbkdf2_hmac("sha256", b"%d" % number, b"salt", 4000)
    with LOCK:
        DONE += 1
    return digest


def report():
    while True:
        time.sleep(1)
        print(DONE)


threading.Thread(target=report, name="report", daemon=True).start()
with ThreadPoolExecutor(8, "thumb") as pool:
    for number in range(1_000_000):
        pool.submit(thumbnail, number)
        time.sleep(0.2)
