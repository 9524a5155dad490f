import psycopg2

connection = None


def take_one():
    global connection
    if connection is None:
        connection = psycopg2.connect("")
    with connection, connection.cursor() as cursor:
        cursor.execute("update stock set n = n + 1 where id = 3")


def app(environ, start_response):
    take_one()
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
