import threading
import time

connections = threading.BoundedSemaphore(2)


def query_ledger() -> None:
    with connections:
        time.sleep(0.02)


def serve() -> None:
    while True:
        query_ledger()


for _ in range(7):
    threading.Thread(target=serve, daemon=True).start()
time.sleep(600)
