import sys

import psycopg2
from flask import Flask

app = Flask(__name__)


def take_stock():
    with psycopg2.connect(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop") as db:
        db.cursor().execute("update stock set n = n - 1 where id = 1")


@app.route("/")
def index():
    take_stock()
    return "ok"


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
