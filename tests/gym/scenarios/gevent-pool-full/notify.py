from gevent import monkey

monkey.patch_all()

import sys
import urllib.request

from gevent.pool import Pool
from gevent.pywsgi import WSGIServer

mails = Pool(2)


def send_mail():
    return urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/mail").read()


def app(environ, start_response):
    mails.spawn(send_mail)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


WSGIServer(("127.0.0.1", int(sys.argv[1])), app, log=None).serve_forever()
