import sys

from gevent import monkey

monkey.patch_all()
import psycopg2
from gevent.pywsgi import WSGIServer

connection = psycopg2.connect("dbname=shop")
connection.autocommit = True


def find_seats(show):
    cursor = connection.cursor()
    cursor.execute("select pg_sleep(0.08), %s", (show,))
    return cursor.fetchone()


def application(environ, start_response):
    row = find_seats(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(row).encode()]


WSGIServer(("127.0.0.1", int(sys.argv[1])), application, log=None).serve_forever()
