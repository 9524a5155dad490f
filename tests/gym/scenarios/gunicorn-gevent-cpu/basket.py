from flask import Flask

app = Flask(__name__)


def price_basket():
    best = 0
    for a in range(300):
        for b in range(3000):
            best = max(best, (a * b) % 1009)
    return str(best)


@app.route("/price")
def price():
    return price_basket()


@app.route("/")
def index():
    return "hello"
