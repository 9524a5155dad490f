"""Running the live tests on other kernels, under QEMU."""
