import os
import sqlite3

from flask import Flask, request

app = Flask(__name__)


def log_visit(path):
    db = sqlite3.connect(os.environ["VISITS"], timeout=20)
    with db:
        db.execute("create table if not exists visits(path text)")
        db.execute("insert into visits values (?)", (path,))
    db.close()


@app.route("/")
def index():
    log_visit(request.path)
    return "hello"
