"""A Python service of four threads that work for a moment and sleep, until it is killed."""

import json
import threading
import time


def work() -> None:
    """Spell some numbers a hundred times a second."""
    while True:
        json.dumps(list(range(200)))
        time.sleep(0.01)


for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(36_000)
