import queue
import threading
import time

rows = queue.Queue(maxsize=50)


def write_rows():
    while True:
        rows.get()
        time.sleep(0.02)


def store_row(row):
    rows.put(row)


def receive():
    number = 0
    while True:
        number += 1
        store_row({"number": number})


threading.Thread(target=write_rows, daemon=True).start()
for _ in range(4):
    threading.Thread(target=receive, daemon=True).start()
threading.Event().wait()
