import multiprocessing
import sys

from flask import Flask

app = Flask(__name__)


def score_offer(number):
    total = 0
    for step in range(900_000):
        total += (step ^ number) & 7
    return total


@app.route("/")
def index():
    return {"score": pool.apply(score_offer, (7,))}


if __name__ == "__main__":
    pool = multiprocessing.Pool(1)
    app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
