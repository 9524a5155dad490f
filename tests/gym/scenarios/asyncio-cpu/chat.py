"""A chat over asyncio streams; now and then somebody exports."""

import asyncio
import sys

messages = [f"user{i % 17}: message {i} of the day" for i in range(20000)]


def word_counts(lines):
    counts = {}
    for line in lines:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])[:20]


async def export_room():
    best = []
    for start in range(0, len(messages), 500):
        best.append(word_counts(messages[: start + 500]))  # and never awaits
    return f"{best[-1]}\n"


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            body = await export_room() if path == "/export" else "sent\n"
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
