import asyncio
import sys


async def serve(reader, writer):
    writer.write(b"220 mail\r\n")
    is_data = False
    try:
        while line := await reader.readline():
            if is_data and line != b".\r\n":
                continue
            word = line.split()[0].upper() if line.split() else b""
            await asyncio.sleep(0.15)
            was_data, is_data = is_data, word == b"DATA"
            code = b"354" if is_data else b"221" if word == b"QUIT" else b"250"
            writer.write(code + b" ok\r\n")
            if word == b"QUIT" and not was_data:
                break
    except OSError:
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
