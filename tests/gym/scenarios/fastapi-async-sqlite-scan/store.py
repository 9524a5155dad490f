import sqlite3


class Store:
    def __init__(self, path):
        self.db = sqlite3.connect(path, check_same_thread=False)

    def search(self, words):
        cursor = self.db.execute("select id, title from articles where body like ? order by length(body) limit 10", (f"%{words}%",))
        return cursor.fetchall()
