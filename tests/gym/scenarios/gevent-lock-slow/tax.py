import os

import requests
from flask import Flask
from gevent.lock import Semaphore

app = Flask(__name__)
session, turn = requests.Session(), Semaphore(1)


def ask_tax():
    with turn:
        return session.get(f"http://127.0.0.1:{os.environ['DOWN']}/", timeout=20).text


@app.route("/")
def index():
    return ask_tax()
