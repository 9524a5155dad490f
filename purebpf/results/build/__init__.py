"""Builds profiles from what kernel programs counted and perf.data files hold."""
