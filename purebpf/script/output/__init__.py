"""Values that programs have sent or stored, as text and as JSON, in the layouts of bpftrace."""
