"""Takes orders, each with a transaction of its own."""

import os
import sys
import threading
import time

import psycopg2


class Orders:
    def __init__(self):
        self.db = psycopg2.connect(host=os.environ["PGHOST"], port=os.environ["PGPORT"], user="postgres", dbname="shop")

    def place_order(self, customer):
        with self.db, self.db.cursor() as cursor:
            cursor.execute("insert into orders(customer, sum) values (%s, %s)", (customer, customer / 7))


def take_orders(seed):
    orders = Orders()
    while True:
        orders.place_order(seed)
        time.sleep(0.01)


for seed in range(6):
    threading.Thread(target=take_orders, args=(seed,), daemon=True).start()
threading.Event().wait()
