"""What Prometheus reads of an agent: counters of its windows, histograms of the scheduler."""
