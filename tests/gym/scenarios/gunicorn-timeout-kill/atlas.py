import time

from flask import Flask

app = Flask(__name__)


def render_atlas():
    time.sleep(4)
    return "atlas"


@app.route("/")
def index():
    return render_atlas()
