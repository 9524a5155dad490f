def render_page(path):
    return "".join(f"<li>{path}{n}</li>" for n in range(300)).encode()


def app(environ, start_response):
    body = render_page(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
