import sqlite3
import sys
import threading

from waitress import serve

local = threading.local()


def connection():
    if not hasattr(local, "db"):
        local.db = sqlite3.connect(sys.argv[2], isolation_level=None, timeout=30)
        local.db.execute("create table if not exists views(path text, tag text)")
        local.db.execute("create index if not exists by_tag on views(tag)")
    return local.db


def record_view(path):
    for tag in ("all", "today", "week", "month", "year", "europe", "mobile", "new"):
        connection().execute("insert into views values (?, ?)", (path, tag))


def app(environ, start_response):
    record_view(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=4)
