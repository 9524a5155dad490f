"""The parts that commands share: targets, durations, signals, output, the loss line."""
