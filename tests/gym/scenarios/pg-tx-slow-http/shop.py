import http.client
import sys
import threading

import psycopg2


def ask_bank():
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    connection.request("GET", "/")
    connection.getresponse().read()


def pay(connection):
    with connection.cursor() as cursor:
        cursor.execute("update stock set n = n - 1 where id = 1")
        ask_bank()
    connection.commit()


def work():
    connection = psycopg2.connect("")
    while True:
        pay(connection)


for _ in range(5):
    threading.Thread(target=work).start()
