import os

import psycopg2
from flask import Flask

app = Flask(__name__)
db = None


def connect():
    global db
    if db is None:
        db = psycopg2.connect(f"host=127.0.0.1 port={os.environ['DBPORT']} user=postgres dbname=shop")
    return db


def sum_sales():
    total = 0
    with connect() as session, session.cursor(name="sales") as cursor:
        cursor.itersize = 1
        cursor.execute("select cents from sales")
        for (cents,) in cursor:
            total += cents
    return total


@app.route("/")
def report():
    return str(sum_sales())
