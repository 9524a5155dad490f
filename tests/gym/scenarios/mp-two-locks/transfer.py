import multiprocessing
import time


def move_money(first, second):
    while True:
        with first:
            time.sleep(0.1)
            with second:
                time.sleep(0.01)


def idle_reporter(queue):
    while True:
        queue.get()


if __name__ == "__main__":
    checking, savings, reports = multiprocessing.Lock(), multiprocessing.Lock(), multiprocessing.Queue()
    for words in ((checking, savings), (savings, checking)):
        multiprocessing.Process(target=move_money, args=words, daemon=True).start()
    multiprocessing.Process(target=idle_reporter, args=(reports,), daemon=True).start()
    while True:
        time.sleep(1)
