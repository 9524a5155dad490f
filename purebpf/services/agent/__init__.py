"""The agent: `purebpf agent` profiles a machine all the time, and sends what it finds."""
