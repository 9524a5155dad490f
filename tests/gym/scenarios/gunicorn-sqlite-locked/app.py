import os
import sqlite3


def count_visit():
    with sqlite3.connect(os.environ["DB"], timeout=30) as db:
        db.execute("create table if not exists visits (n int)")
        db.execute("insert into visits values (1)")


def app(environ, start_response):
    try:
        count_visit()
    except sqlite3.OperationalError:
        pass
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
