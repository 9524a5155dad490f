import os

import psycopg2
from flask import Flask

app = Flask(__name__)
state = {}


def fold_price():
    if "db" not in state:
        state["db"] = psycopg2.connect(f"host=127.0.0.1 port={os.environ['DBPORT']} user=postgres dbname=shop")
    with state["db"] as db:
        cursor = db.cursor()
        cursor.execute("select fold_price(200000)")
        return cursor.fetchone()[0]


@app.route("/")
def price():
    return str(fold_price())
