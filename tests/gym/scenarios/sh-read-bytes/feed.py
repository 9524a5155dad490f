while True:
    print("2026-11-29 shop INFO order placed by somebody", flush=False)
