"""Everything that executes or times a kernel: the virtual GPU and real ones."""
