import sys

import httpx
from flask import Flask

app = Flask(__name__)


def format_label(order):
    return "\n".join(f"{order}-{n:04d}" for n in range(400))


def quote_shipping(order):
    with httpx.Client(timeout=20) as client:
        return client.get(f"http://127.0.0.1:{sys.argv[2]}/quote/{order}").text


@app.route("/")
def order_page():
    return format_label(17) + quote_shipping(17)


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
