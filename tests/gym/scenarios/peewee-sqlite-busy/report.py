import sqlite3
import sys
import time

db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
while True:
    db.execute("begin immediate")
    time.sleep(1.5)
    db.execute("commit")
    time.sleep(0.05)
