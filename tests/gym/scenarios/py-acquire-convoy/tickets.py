import hashlib
import threading
import time

lock = threading.Lock()
blob = b"x" * 8_000_000


def take_ticket():
    lock.acquire()
    try:
        hashlib.sha256(blob).hexdigest()  # releases the GIL
    finally:
        lock.release()


def serve():
    while True:
        take_ticket()
        time.sleep(0.002)


for _ in range(8):
    threading.Thread(target=serve, daemon=True).start()
threading.Event().wait()
