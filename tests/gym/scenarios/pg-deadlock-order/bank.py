import itertools

import psycopg2
from flask import Flask

app = Flask(__name__)
turn = itertools.count()


def transfer(first, second):
    with psycopg2.connect("") as db:
        cursor = db.cursor()
        cursor.execute("update accounts set cents = cents - 1 where id = %s", (first,))
        cursor.execute("select pg_sleep(0.01)")
        cursor.execute("update accounts set cents = cents + 1 where id = %s", (second,))


@app.route("/")
def pay():
    a, b = (3, 7) if next(turn) % 2 else (7, 3)
    try:
        transfer(a, b)
    except psycopg2.errors.DeadlockDetected:
        return "again", 503
    return "ok"
