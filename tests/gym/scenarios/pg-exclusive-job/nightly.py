import sys
import time

import psycopg2

db = psycopg2.connect(f"host=127.0.0.1 port={sys.argv[1]} user=postgres dbname=shop")


def close_books():
    cursor = db.cursor()
    cursor.execute("lock table orders in exclusive mode")
    time.sleep(1.5)
    db.commit()
    time.sleep(0.1)


while True:
    close_books()
