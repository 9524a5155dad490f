import multiprocessing
import time


def parse_page(number):
    return {"id": number, "words": [f"w{n * number % 977}" for n in range(300)]}


def put_page(pages, number):
    pages.put(parse_page(number))


def parse(pages, first):
    number = first
    while True:
        put_page(pages, number)
        number += 4


def index_page(page):
    time.sleep(0.05)
    return len(page["words"])


if __name__ == "__main__":
    pages = multiprocessing.Queue(10)
    for first in range(4):
        multiprocessing.Process(target=parse, args=(pages, first), daemon=True).start()
    while True:
        index_page(pages.get())
