import sys


def log_request(environ):
    sys.stderr.write(f"request {environ['PATH_INFO']} " + "x" * 4000 + "\n")
    sys.stderr.flush()


def app(environ, start_response):
    log_request(environ)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
