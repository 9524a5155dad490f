import os
import sys

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path

SECRET_KEY, ROOT_URLCONF, ALLOWED_HOSTS, DEBUG = "x", "shopsite", ["*"], False
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "shop",
        "USER": "postgres",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "CONN_MAX_AGE": 600,
    }
}
application = get_wsgi_application()

from django.db import connection, models  # noqa: E402


class Customer(models.Model):
    name = models.TextField()

    class Meta:
        app_label = "shopsite"


class Invoice(models.Model):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
    amount = models.IntegerField()

    class Meta:
        app_label = "shopsite"


with connection.cursor() as cursor:
    cursor.execute("SELECT pg_advisory_lock(5)")
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS shopsite_customer (id bigserial PRIMARY KEY, name text)"
    )
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS shopsite_invoice (id bigserial PRIMARY KEY, customer_id bigint, amount int)"
    )
    if not Customer.objects.exists():
        Customer.objects.bulk_create([Customer(name=f"c{n}") for n in range(50)])
        Invoice.objects.bulk_create([Invoice(customer_id=1 + n % 50, amount=n) for n in range(200)])
    cursor.execute("SELECT pg_advisory_unlock(5)")
connection.close()


def invoice_list(request):
    return JsonResponse(
        [
            {"customer": invoice.customer.name, "amount": invoice.amount}
            for invoice in Invoice.objects.all()
        ],
        safe=False,
    )


urlpatterns = [path("invoices", invoice_list)]
