def find_orders(customer):
    return [{"id": n * 17 % 1009, "customer": customer, "sum": n / 3} for n in range(40)]
