import queue
import sys
import threading
from concurrent.futures import Future

from flask import Flask

app = Flask(__name__)
jobs = queue.Queue()


def print_labels():
    while True:
        number, future = jobs.get()
        future.set_result(f"label {1 / (number - 3)}")


def ask_printer(number):
    future = Future()
    jobs.put((number, future))
    return future.result()


numbers = iter(range(10**9))


@app.route("/")
def index():
    return ask_printer(next(numbers))


threading.Thread(target=print_labels, daemon=True).start()
app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
