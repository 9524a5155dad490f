import os
import threading

import psycopg2


class Catalogue:
    """A connection for each thread."""

    def __init__(self):
        self.local = threading.local()

    def cursor(self):
        if not hasattr(self.local, "db"):
            self.local.db = psycopg2.connect(host="127.0.0.1", port=os.environ["DB"], user="postgres", dbname="shop")
            self.local.db.autocommit = True
        return self.local.db.cursor()

    def search(self, words):
        with self.cursor() as cursor:
            cursor.execute("select id, name from articles where name ilike %s or note ilike %s limit 5", (f"%{words}%", f"%{words}%"))
            return cursor.fetchall()


catalogue = Catalogue()
