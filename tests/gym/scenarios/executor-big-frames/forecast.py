from concurrent.futures import ProcessPoolExecutor


class Region:
    def __init__(self, number):
        self.rows = [{"day": n, "rain": n * 0.1, "wind": number + n} for n in range(25_000)]


def sum_rain(region):
    return sum(row["rain"] for row in region.rows[:50])


def forecast_all(pool, regions):
    return list(pool.map(sum_rain, regions))


if __name__ == "__main__":
    regions = [Region(n) for n in range(8)]
    with ProcessPoolExecutor(2) as pool:
        while True:
            forecast_all(pool, regions)
