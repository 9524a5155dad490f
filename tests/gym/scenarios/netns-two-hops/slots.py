import fcntl
import os

from flask import Flask

app = Flask(__name__)


def reserve_slot():
    with open(os.environ["LOCK"], "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return "slot"


@app.route("/")
def index():
    return reserve_slot()
