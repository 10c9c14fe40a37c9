"""Where results meet compilers and frameworks: Triton, and everything that calls ptxas."""
