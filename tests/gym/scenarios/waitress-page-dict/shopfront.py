import sys

from flask import Flask, request
from waitress import serve

from pagecache import PageCache

app = Flask(__name__)
pages = PageCache()


@app.route("/p")
def product():
    return pages.lookup(request.full_path)


serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=6)
