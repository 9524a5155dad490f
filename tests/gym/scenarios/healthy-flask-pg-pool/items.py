import random
import sys

from flask import Flask
from psycopg_pool import ConnectionPool
from waitress import serve

pool = ConnectionPool(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop", min_size=4, max_size=8)
app = Flask(__name__)


@app.route("/<number>")
def item(number):
    with pool.connection() as connection:
        row = connection.execute("select name from items where id = %s", (random.randint(1, 5000),)).fetchone()
        connection.execute("update items set seen = seen + 1 where id = %s", (random.randint(1, 5000),))
    return row[0]


serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=8)
