import logging.handlers
import sys
import threading
import time

log = logging.getLogger("orders")
handler = logging.handlers.SysLogHandler(sys.argv[1])
log.addHandler(handler)
log.setLevel(logging.INFO)


def place_order(number):
    log.info("order %d of customer %s", number, "x" * 100)


def run():
    for number in range(1 << 40):
        place_order(number)


for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
time.sleep(600)
