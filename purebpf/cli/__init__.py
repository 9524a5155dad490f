"""What the commands share: targets, durations, signals, output, the loss line."""
