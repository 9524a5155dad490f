class Canvas:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.pixels = bytearray(width * height * 4)

    def fill_row(self, row, colour):
        begin = row * self.width * 4
        self.pixels[begin : begin + self.width * 4] = bytes(colour) * self.width


def draw_badge(number):
    canvas = Canvas(3600, 3000)
    for row in range(0, canvas.height, 100):
        canvas.fill_row(row, (number % 256, 40, 90, 255))
    return sum(canvas.pixels[:: 4096 * 64])
