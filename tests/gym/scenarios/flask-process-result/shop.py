import sys
from concurrent.futures import ProcessPoolExecutor

from flask import Flask

import taxes

app = Flask(__name__)


@app.route("/")
def checkout():
    return pool.submit(taxes.tax_of, int(sys.argv[2])).result()


if __name__ == "__main__":
    pool = ProcessPoolExecutor(1)
    app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
