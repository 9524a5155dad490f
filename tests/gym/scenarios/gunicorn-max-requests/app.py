def load_rates():
    return {f"{a}-{b}": a / b for a in range(1, 500) for b in range(1, 400)}


rates = load_rates()


def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
