import multiprocessing


def draw_tiles(results):
    for tile in range(100):
        results.put(b"x" * 200_000)


def collect_results():
    results = multiprocessing.Queue()
    worker = multiprocessing.Process(target=draw_tiles, args=(results,))
    worker.start()
    worker.join()
    return [results.get() for _ in range(100)]


if __name__ == "__main__":
    collect_results()
