import sys
import time

from flask import Flask
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

app = Flask(__name__)
engine = create_engine(f"postgresql+psycopg2://postgres@127.0.0.1:{sys.argv[2]}/shop", pool_size=2, max_overflow=0, pool_timeout=60)


def push_to_printer(rows):
    time.sleep(0.2)


def list_orders():
    with Session(engine) as session:
        rows = session.execute(text("select id, cents from orders order by id limit 50")).all()
        push_to_printer(rows)
        return rows


@app.route("/")
def orders():
    return ",".join(str(row.cents) for row in list_orders())


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
