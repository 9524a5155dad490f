import threading
import time


def wait_for_receipt() -> None:
    threading.Event().wait()


def send_notice() -> None:
    threading.Thread(target=wait_for_receipt, daemon=True).start()


while True:
    send_notice()
    time.sleep(0.05)
