import select

import psycopg2

connection = psycopg2.connect("")
connection.autocommit = True
connection.cursor().execute("listen jobs")
while True:
    select.select([connection], [], [])
    connection.poll()
