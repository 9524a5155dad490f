import os

import redis
from flask import Flask

app = Flask(__name__)
store = redis.Redis(port=int(os.environ["CACHE"]))


def choose_seat(number):
    return sum(number * n % 97 for n in range(60000))


def take_ticket():
    with store.pipeline() as transaction:
        while True:
            try:
                transaction.watch("tickets")
                number = int(transaction.get("tickets") or 0)
                choose_seat(number)
                transaction.multi()
                transaction.set("tickets", number + 1)
                transaction.execute()
                return number
            except redis.WatchError:
                continue


@app.route("/")
def ticket():
    return str(take_ticket())
