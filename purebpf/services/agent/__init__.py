"""The agent: `purebpf agent` profiles a machine all the time, and sends the profiles."""
