import multiprocessing
import time


def price_basket(prices):
    return sum(prices[item] for item in range(300))


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        prices = manager.dict({item: item for item in range(300)})
        while True:
            price_basket(prices)
            time.sleep(0.005)
