import multiprocessing
import time


def take_ticket(lock, number) -> None:
    with lock:
        number.value += 1
        time.sleep(0.004)


def work(lock, number) -> None:
    while True:
        take_ticket(lock, number)


if __name__ == "__main__":
    shared = multiprocessing.Lock(), multiprocessing.Value("q", 0)
    workers = [multiprocessing.Process(target=work, args=shared) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
