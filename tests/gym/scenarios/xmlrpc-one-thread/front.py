import sys
from xmlrpc.client import ServerProxy

from flask import Flask

app = Flask(__name__)


def book(row):
    return ServerProxy(f"http://127.0.0.1:{sys.argv[2]}").reserve_seat(row)


@app.route("/")
def index():
    return {"seat": book(3)}


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
