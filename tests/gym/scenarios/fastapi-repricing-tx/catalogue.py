import os

from fastapi import FastAPI
from sqlalchemy import create_engine, text

engine = create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{os.environ['DB']}/shop", pool_size=5)
app = FastAPI()


@app.get("/items/{item}")
def show_item(item: int):
    with engine.begin() as connection:
        connection.execute(text("update items set seen = seen + 1 where id = :id"), {"id": item})
        price = connection.execute(text("select price from items where id = :id"), {"id": item}).scalar()
    return {"id": item, "price": price}
