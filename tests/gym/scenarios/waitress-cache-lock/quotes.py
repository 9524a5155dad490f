import functools
import os
import threading

import requests
from flask import Flask

app = Flask(__name__)
session = requests.Session()


def one_at_a_time(function):
    lock = threading.Lock()

    @functools.wraps(function)
    def serialized(*args, **kwargs):
        with lock:
            return function(*args, **kwargs)

    return serialized


class Rates:
    @one_at_a_time
    def fetch_rates(self, currency):
        return session.get(os.environ["RATES_URL"], params={"c": currency}, timeout=5).text


rates = Rates()


@app.route("/quote")
def quote():
    return {"rate": rates.fetch_rates("EUR")}
