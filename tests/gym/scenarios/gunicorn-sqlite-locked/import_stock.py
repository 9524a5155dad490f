import os
import sqlite3
import time

db = sqlite3.connect(os.environ["DB"], timeout=30, isolation_level=None)
db.execute("pragma journal_mode=delete")
while True:
    db.execute("begin immediate")
    time.sleep(2.5)
    db.execute("commit")
    time.sleep(0.05)
