import sys
import time

import psycopg2
import requests

db = psycopg2.connect(f"host=127.0.0.1 port={sys.argv[1]} user=postgres dbname=shop")


def charge_card():
    requests.get(f"http://127.0.0.1:{sys.argv[2]}/charge", timeout=20)


def settle_order():
    db.cursor().execute("update stock set n = n + 1 where id = 1")
    charge_card()
    db.commit()


while True:
    settle_order()
    time.sleep(0.02)
