import time

from flask import Flask

app = Flask(__name__)


def back_off():
    time.sleep(0.5)


@app.route("/")
def index():
    back_off()
    return "ok"
