import os
import time

from django.conf import settings

settings.configure(
    DEBUG=False,
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="x",
    CACHES={"default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": os.environ["CACHE"]}},
)
import django

django.setup()
from django.core.cache import cache
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path


def price_list():
    return {f"sku-{n}": {"cents": n * 7, "name": f"article {n}"} for n in range(8000)}


def cached_prices():
    return cache.get_or_set(f"prices-{time.time()}", price_list, 60)


def prices(request):
    return HttpResponse(str(len(cached_prices())))


urlpatterns = [path("", prices)]
application = get_wsgi_application()
