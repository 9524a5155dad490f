import asyncio
import sys


async def answer(reader, writer):
    while await reader.readline():
        while (await reader.readline()).strip():
            pass
        stock_reader, stock_writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
        stock_writer.write(b"PING\r\n")
        await stock_reader.readline()
        stock_writer.close()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()


async def clean_up():
    while True:
        await asyncio.sleep(0.5)


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(server.serve_forever(), clean_up())


asyncio.run(main())
