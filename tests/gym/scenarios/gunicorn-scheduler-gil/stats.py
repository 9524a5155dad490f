visits = [(n * 7919) % 86400 for n in range(60000)]


def rebuild_histogram():
    buckets = {}
    for second in visits:
        key = f"{second // 3600:02d}:{second % 3600 // 60:02d}"
        buckets[key] = buckets.get(key, 0) + 1
    return buckets
