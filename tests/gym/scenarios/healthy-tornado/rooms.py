import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import tornado.web

pool = ThreadPoolExecutor(4)
local = threading.local()


def find_room():
    if not hasattr(local, "db"):
        local.db = psycopg2.connect(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop")
        local.db.autocommit = True
    cursor = local.db.cursor()
    cursor.execute("select name from rooms where id = 17")
    return cursor.fetchone()[0]


class Room(tornado.web.RequestHandler):
    async def get(self):
        self.write(await asyncio.get_running_loop().run_in_executor(pool, find_room))


class News(tornado.web.RequestHandler):
    async def get(self):
        await asyncio.sleep(2)
        self.write("nothing")


async def main():
    tornado.web.Application([("/room", Room), ("/news", News)]).listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main())
