import threading
import time


class Catalogue:
    def __init__(self):
        self.lock = threading.RLock()
        self.seen = {}

    def price(self, item):
        with self.lock:
            self.refresh(item)
            return self.seen[item]

    def refresh(self, item):
        time.sleep(0.02)
        self.seen[item] = item * 2


catalogue = Catalogue()


def serve():
    item = 0
    while True:
        item = (item + 1) % 100
        catalogue.price(item)
        time.sleep(0.001)


for _ in range(6):
    threading.Thread(target=serve, daemon=True).start()
threading.Event().wait()
