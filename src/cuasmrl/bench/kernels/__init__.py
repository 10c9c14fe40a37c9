"""Whole kernels with public figures, beside what the model says of them."""
