import os
import sqlite3

from fastapi import FastAPI

with sqlite3.connect(os.environ["DB"]) as db:
    db.execute("create table items (id integer primary key, name text)")
    db.executemany("insert into items values (?, ?)", [(n, f"item {n}") for n in range(1000)])
app = FastAPI()


@app.get("/item/{number}")
def item(number: str):
    with sqlite3.connect(os.environ["DB"]) as db:
        return db.execute("select name from items where id = ?", (len(number),)).fetchone()
