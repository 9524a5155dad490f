"""Raises prices every night; asks a person before it commits."""
import sys
import time

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

engine = create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{sys.argv[1]}/shop")


def ask_operator(changed):
    time.sleep(600)


with Session(engine) as session:
    changed = session.execute(text("update items set price = price + 1")).rowcount
    ask_operator(changed)
    session.commit()
