import threading
import time

barrier = threading.Barrier(7)
ledger = threading.Lock()


def finish_step():
    barrier.wait()


def write_part(number):
    if number == 0:
        with ledger:
            finish_step()
    finish_step()


def rotate():
    time.sleep(0.5)
    with ledger:
        pass
    finish_step()


for number in range(6):
    threading.Thread(target=write_part, args=(number,)).start()
threading.Thread(target=rotate).start()
