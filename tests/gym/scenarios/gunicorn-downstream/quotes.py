import os
import urllib.request


def fetch_quote(path):
    url = f"http://127.0.0.1:{os.environ['DOWN']}{path}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def app(environ, start_response):
    body = fetch_quote(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
