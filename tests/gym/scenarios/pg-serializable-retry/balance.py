import threading
import time

import psycopg


def add_to_balance(connection):
    while True:
        try:
            with connection.transaction():
                connection.execute("set transaction isolation level serializable")
                (amount,) = connection.execute("select amount from balances where id = 1").fetchone()
                time.sleep(0.01)
                connection.execute("update balances set amount = %s where id = 1", (amount + 1,))
            return
        except psycopg.errors.SerializationFailure:
            pass


def work():
    with psycopg.connect("", autocommit=True) as connection:
        while True:
            add_to_balance(connection)


for _ in range(6):
    threading.Thread(target=work).start()
