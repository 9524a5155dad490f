import os

from flask import Flask
from peewee import CharField, Model, SqliteDatabase

db = SqliteDatabase(os.environ["DB"], timeout=20)
app = Flask(__name__)


class Visit(Model):
    page = CharField()

    class Meta:
        database = db


db.create_tables([Visit], safe=True)


def add_visit(page):
    Visit(page=page).save()


@app.route("/")
def index():
    add_visit("home")
    return "ok"
