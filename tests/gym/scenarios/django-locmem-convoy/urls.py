from django.http import HttpResponse
from django.urls import path

from timetable import Timetable


def departures(request, station):
    return HttpResponse(Timetable(station).departures())


urlpatterns = [path("from/<int:station>", departures)]
