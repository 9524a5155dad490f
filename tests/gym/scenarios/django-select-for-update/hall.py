import os
from urllib.request import urlopen

from django.conf import settings

settings.configure(
    DEBUG=False,
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="x",
    CONN_MAX_AGE=60,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": os.environ["DBPORT"],
            "USER": "postgres",
            "NAME": "shop",
        }
    },
)
import django

django.setup()
from django.core.wsgi import get_wsgi_application
from django.db import models, transaction
from django.http import HttpResponse
from django.urls import path


class Seat(models.Model):
    taken = models.IntegerField()

    class Meta:
        app_label = "hall"
        db_table = "hall_seat"


def ask_payment(seat):
    return urlopen(f"http://127.0.0.1:{os.environ['DOWN']}/pay/{seat}", timeout=20).read()


@transaction.atomic
def reserve_seat(number):
    seat = Seat.objects.select_for_update().get(pk=number)
    ask_payment(number)
    seat.taken += 1
    seat.save()
    return seat.taken


def reserve(request):
    return HttpResponse(str(reserve_seat(5)))


urlpatterns = [path("", reserve)]
application = get_wsgi_application()
