import itertools
import queue
import sys
import threading
import time

from flask import Flask

app = Flask(__name__)
jobs, results, numbers = queue.Queue(), {}, itertools.count()


def work():
    while True:
        number = jobs.get()
        time.sleep(0.05)
        results[number] = f"job {number} is done"


def await_result(number):
    while number not in results:
        time.sleep(0.001)
    return results.pop(number)


@app.route("/")
def submit():
    number = next(numbers)
    jobs.put(number)
    return await_result(number)


threading.Thread(target=work, name="worker", daemon=True).start()
app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
