import sqlite3
import sys
import time

connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)


def store_reading(value):
    connection.execute("insert into readings values (?, ?)", (time.time(), value))


value = 0
while True:
    store_reading(value)
    value += 1
    time.sleep(0.02)
