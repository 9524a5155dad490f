"""The programs that the referee runs."""
