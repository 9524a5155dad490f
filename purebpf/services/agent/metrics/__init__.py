"""The metrics of an agent for Prometheus: counters of its windows, histograms of the scheduler."""
