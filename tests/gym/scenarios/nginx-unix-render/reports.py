import subprocess


class Report:
    def __init__(self, number):
        self.number = number

    def to_pdf(self):
        return subprocess.run(
            ["sh", "-c", "sleep 0.12; echo pdf"], capture_output=True, check=True
        ).stdout


def app(environ, start_response):
    body = Report(7).to_pdf()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
