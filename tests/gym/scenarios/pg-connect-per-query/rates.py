import threading

import psycopg2


def lookup_rate(code):
    connection = psycopg2.connect("dbname=shop")
    cursor = connection.cursor()
    cursor.execute("select rate from rates where code = %s", (code,))
    row = cursor.fetchone()
    connection.close()
    return row


def convert_all():
    while True:
        for code in range(50):
            lookup_rate(code)


for _ in range(3):
    threading.Thread(target=convert_all, daemon=True).start()
threading.Event().wait()
