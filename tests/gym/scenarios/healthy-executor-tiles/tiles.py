"""Renders map tiles: small tasks, large work."""
import time
from concurrent.futures import ProcessPoolExecutor


def render_tile(place):
    x, y = place
    return sum((x * n) ^ (y + n) for n in range(60_000)) & 0xFF


if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        while True:
            list(pool.map(render_tile, [(n, n * 3) for n in range(12)]))
            time.sleep(0.2)
