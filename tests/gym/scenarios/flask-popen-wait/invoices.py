import subprocess
import sys

from flask import Flask

app = Flask(__name__)
SCRIPT = "import sys; [print('warning: glyph', n, 'is not in this font', file=sys.stderr) for n in range(4000)]; print('ok')"


def convert_invoice():
    job = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    job.wait()
    return job.stdout.read()


@app.route("/invoice")
def invoice():
    return convert_invoice()
