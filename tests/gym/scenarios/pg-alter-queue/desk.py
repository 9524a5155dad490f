import sys

import psycopg2
from flask import Flask

app = Flask(__name__)


def count_parcels():
    with psycopg2.connect(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop") as db:
        cursor = db.cursor()
        cursor.execute("select count(*) from parcels where id < 50")
        return cursor.fetchone()[0]


@app.route("/")
def index():
    return {"parcels": count_parcels()}


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
