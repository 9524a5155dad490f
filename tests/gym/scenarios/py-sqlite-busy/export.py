import sqlite3
import sys
import time

connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)


def export_readings():
    connection.execute("begin immediate")
    rows = connection.execute("select count(*) from readings").fetchone()
    time.sleep(1.5)
    connection.execute("commit")
    return rows


while True:
    export_readings()
    time.sleep(0.1)
