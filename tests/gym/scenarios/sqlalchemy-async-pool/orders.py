import asyncio
import sys

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

engine = create_async_engine(sys.argv[2], pool_size=1, max_overflow=0)


async def sum_of(shop):
    async with engine.connect() as connection:
        rows = await connection.execute(text("select sum(total) from orders where shop = :shop"), {"shop": shop})
        return rows.scalar()


async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            body = str(await sum_of(3)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=128)
    await server.serve_forever()


asyncio.run(main())
