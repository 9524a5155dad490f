import sys
import threading
import time

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from waitress import serve

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")


class PriceList:
    def __init__(self):
        self.lock = threading.RLock()
        self.prices = {}

    def find_price(self, name):
        with self.lock:
            return self.prices.get(name, 0)

    def rebuild(self):
        with self.lock:
            self.prices = {f"p{n}": sum(d * n for d in range(30)) for n in range(20_000)}


prices = PriceList()


def keep_fresh():
    while True:
        prices.rebuild()
        time.sleep(0.05)


def show_price(request):
    return HttpResponse(str(prices.find_price("p7")))


urlpatterns = [path("", show_price)]
threading.Thread(target=keep_fresh, daemon=True).start()
serve(get_wsgi_application(), listen=f"127.0.0.1:{sys.argv[1]}", threads=6)
