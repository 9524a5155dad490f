import sys
import time

import psycopg2


def load_orders():
    with psycopg2.connect(
        host="127.0.0.1", port=sys.argv[1], user="app", dbname="shop"
    ) as connection:
        return connection.cursor().execute("select count(*) from orders")


while True:
    try:
        load_orders()
    except psycopg2.OperationalError:
        time.sleep(0.002)
