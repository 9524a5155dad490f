import threading

from psycopg_pool import ConnectionPool

pool = ConnectionPool("", min_size=2, max_size=2, timeout=60)


def load_invoice(number):
    with pool.connection() as connection:
        return connection.execute("select pg_sleep(0.15), %s", (number,)).fetchone()


def handle_requests(start):
    number = start
    while True:
        load_invoice(number)
        number += 1


pool.wait()
for start in range(12):
    threading.Thread(target=handle_requests, args=(start,), daemon=True).start()
threading.Event().wait()
