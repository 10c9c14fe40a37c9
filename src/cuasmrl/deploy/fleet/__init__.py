"""Many kernels on many workers: everything that a program was seen to launch, tuned as one job."""
