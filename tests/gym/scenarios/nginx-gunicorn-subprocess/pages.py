import subprocess


def page_of(path):
    return subprocess.run(["sleep", "0.12"], check=False).returncode


def app(environ, start_response):
    body = str(page_of(environ["PATH_INFO"])).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
