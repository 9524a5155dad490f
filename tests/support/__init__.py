"""What tests share: probes, builders, fakes and workloads."""
