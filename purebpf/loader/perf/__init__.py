"""Perf events: named, opened, mapped, and explained when the kernel refuses them."""
