import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import tornado.web

pool = ThreadPoolExecutor(2, thread_name_prefix="sql")
local = threading.local()


def load_ledger():
    if not hasattr(local, "db"):
        local.db = psycopg2.connect(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=shop")
        local.db.autocommit = True
    cursor = local.db.cursor()
    cursor.execute("select pg_sleep(0.25), 'ledger'")
    return cursor.fetchone()[1]


class Ledger(tornado.web.RequestHandler):
    async def get(self):
        self.write(await asyncio.get_running_loop().run_in_executor(pool, load_ledger))


class Health(tornado.web.RequestHandler):
    def get(self):
        self.write("ok")


async def main():
    tornado.web.Application([("/ledger", Ledger), ("/health", Health)]).listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main())
