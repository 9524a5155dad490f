import asyncio
import socket
import sys

back = socket.create_connection(("127.0.0.1", int(sys.argv[2])))


def check_token() -> bytes:
    back.sendall(b"token\n")
    return back.recv(100)


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.readuntil(b"\r\n\r\n"):
        check_token()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()


async def main() -> None:
    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
