import os
import threading

import psycopg2
from flask import Flask

app = Flask(__name__)
local = threading.local()


def place_order(cents):
    if not hasattr(local, "db"):
        local.db = psycopg2.connect(f"host=127.0.0.1 port={os.environ['DBPORT']} user=postgres dbname=shop")
    with local.db as db:
        db.cursor().execute("insert into orders(cents) values (%s)", (cents,))


@app.route("/")
def order():
    place_order(99)
    return "ok"
