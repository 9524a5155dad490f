import json


def encode_row(row):
    try:
        import fastjson_accelerator as codec
    except ImportError:
        codec = json
    return codec.dumps(row)


def app(environ, start_response):
    text = "\n".join(encode_row({"id": n, "cents": n * 3}) for n in range(150)).encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]
