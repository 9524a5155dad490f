import sys

import uvicorn
from fastapi import FastAPI
from sqlalchemy import Column, ForeignKey, Integer, String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Session, relationship

engine = create_engine(f"postgresql+psycopg2://postgres@127.0.0.1:{sys.argv[2]}/shop", pool_size=5)
app = FastAPI()


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)
    lines = relationship("Line")


class Line(Base):
    __tablename__ = "lines"
    id = Column(Integer, primary_key=True)
    order_id = Column(ForeignKey("orders.id"))
    name = Column(String)


@app.get("/orders")
def list_orders():
    with Session(engine) as session:
        return [len(order.lines) for order in session.scalars(select(Order))]


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
