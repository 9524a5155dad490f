"""Scores customers in a pool of processes; each task takes the whole table along."""

import multiprocessing
import time

table = {i: {"name": f"customer {i}", "orders": list(range(i % 40))} for i in range(4000)}


def score(task):
    customers, number = task
    return sum(customers[number]["orders"])


def score_all(pool, numbers):
    return sum(pool.map(score, [(table, number) for number in numbers], chunksize=1))


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        while True:
            score_all(pool, range(20))
            time.sleep(0.3)
