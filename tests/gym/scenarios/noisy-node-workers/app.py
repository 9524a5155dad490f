from flask import Flask

app = Flask(__name__)


def greet(number):
    return " ".join(sorted(str(n * number % 1013) for n in range(1500)))


@app.route("/<int:number>")
def index(number):
    return greet(number)
