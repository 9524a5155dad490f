import multiprocessing
import time

ROADS = {n: {"to": [n + 1, n + 2], "km": n % 70, "name": f"road {n}"} for n in range(20000)}


def find_route(requests, answers):
    while True:
        roads, start = requests.get()
        answers.put(roads[start]["km"])


def ask_route(requests, answers, start):
    requests.put((ROADS, start))
    return answers.get()


if __name__ == "__main__":
    requests, answers = multiprocessing.Queue(), multiprocessing.Queue()
    multiprocessing.Process(target=find_route, args=(requests, answers), daemon=True).start()
    start = 0
    while True:
        ask_route(requests, answers, start % 20000)
        start += 1
        time.sleep(0.02)
