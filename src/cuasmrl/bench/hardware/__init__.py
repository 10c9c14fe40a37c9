"""The experiments of the bench on a GPU of this machine, beside what is published and what the model says."""
