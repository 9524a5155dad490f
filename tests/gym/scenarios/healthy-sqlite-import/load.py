"""Imports measurements in transactions of 5,000 rows, one every second."""
import sqlite3
import sys
import time

db = sqlite3.connect(sys.argv[1])
db.execute("create table readings(sensor int, at real, value real)")
n = 0
while True:
    rows = [(k % 40, time.time(), k * 0.25) for k in range(n, n + 5000)]
    with db:
        db.executemany("insert into readings values (?, ?, ?)", rows)
        db.execute("delete from readings where at < ?", (time.time() - 20,))
    n += 5000
    time.sleep(1)
