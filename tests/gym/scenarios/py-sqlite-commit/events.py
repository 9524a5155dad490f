import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
db.execute("create table if not exists events(id integer primary key, text)")


def save_event(text):
    with db:
        db.execute("insert into events(text) values (?)", (text,))


while True:
    save_event("click")
