import itertools
import os

import psycopg2
from flask import Flask

app = Flask(__name__)
state = {}
numbers = itertools.count(os.getpid() % 2 * 10000 + 1)


def drop_basket(number):
    if "db" not in state:
        state["db"] = psycopg2.connect(f"host=127.0.0.1 port={os.environ['DBPORT']} user=postgres dbname=shop")
    with state["db"] as db:
        db.cursor().execute("delete from baskets where id = %s", (number,))


@app.route("/")
def clean():
    drop_basket(next(numbers))
    return "ok"
