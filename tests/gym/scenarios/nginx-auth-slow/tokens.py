import time


def check_token(environ):
    time.sleep(0.35)
    return environ.get("HTTP_AUTHORIZATION", "") is not None


def app(environ, start_response):
    ok = check_token(environ)
    start_response("204 No Content" if ok else "401 No", [])
    return []
