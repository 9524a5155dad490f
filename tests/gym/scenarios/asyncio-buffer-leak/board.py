import asyncio
import sys

sessions = {}


class Session:
    def __init__(self, number):
        self.number = number
        self.scores = [number * 1000.5 + n for n in range(1500)]
        self.notes = {n: f"note {number} {n}" for n in range(60)}


def open_session(path):
    session = Session(len(sessions))
    sessions[path] = session
    return session


async def answer(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            body = str(open_session(head.split()[1]).number).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
