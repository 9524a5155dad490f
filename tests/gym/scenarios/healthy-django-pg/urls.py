from django.db import connection
from django.http import JsonResponse
from django.urls import path


def find_book(number):
    with connection.cursor() as cursor:
        cursor.execute("select title, price from books where id = %s", [number])
        return cursor.fetchone()


def book(request, number):
    title, price = find_book(number % 5000 + 1)
    return JsonResponse({"title": title, "price": float(price)})


urlpatterns = [path("book/<int:number>", book)]
