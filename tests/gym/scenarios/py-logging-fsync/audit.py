import logging
import os
import sys
import threading


class DurableHandler(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        os.fsync(self.stream.fileno())


log = logging.getLogger("audit")
log.setLevel(logging.INFO)
log.addHandler(DurableHandler(sys.argv[1]))


def book_transfer(number):
    log.info("transfer %d booked", number)


def work(start):
    while True:
        book_transfer(start)


for start in range(6):
    threading.Thread(target=work, args=(start,), daemon=True).start()
threading.Event().wait()
