"""Services that run for long: the agent of a host and the store of a fleet."""
