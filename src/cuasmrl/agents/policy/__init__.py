"""A policy that sees where a move leads: trained on many kernels, it ranks the moves of any other."""
