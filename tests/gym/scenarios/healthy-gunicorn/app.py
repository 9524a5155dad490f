from flask import Flask

app = Flask(__name__)


@app.route("/<number>")
def index(number):
    return "ok " + number
