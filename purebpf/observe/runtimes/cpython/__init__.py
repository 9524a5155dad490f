"""Python frames of live processes."""
