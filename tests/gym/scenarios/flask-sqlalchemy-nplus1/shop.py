import sys

from flask import Flask
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

engine = create_engine("postgresql+psycopg2:///shop")
app = Flask(__name__)


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"))
    customer: Mapped[Customer] = relationship()


@app.route("/orders")
def list_orders():
    with Session(engine) as session:
        orders = session.scalars(select(Order).limit(200)).all()
        return {order.id: order.customer.name for order in orders}


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
