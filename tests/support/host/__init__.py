"""What a test changes around it: users, privileges, networks, devices, refusing kernels."""
