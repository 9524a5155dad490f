import multiprocessing
import time

total = multiprocessing.Value("q", 0)


class Counter:
    def tally(self, part):
        with total.get_lock():
            total.value += len(part)
            time.sleep(0.03)

    def __call__(self, part):
        self.tally(part.split())
        return 1


if __name__ == "__main__":
    with multiprocessing.Pool(6) as pool:
        while True:
            sum(pool.imap_unordered(Counter(), ["lorem ipsum dolor"] * 300))
