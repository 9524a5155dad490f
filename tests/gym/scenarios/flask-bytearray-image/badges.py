from flask import Flask

from raster import draw_badge

app = Flask(__name__)


@app.route("/badge/<int:number>")
def badge(number):
    return str(draw_badge(number))
