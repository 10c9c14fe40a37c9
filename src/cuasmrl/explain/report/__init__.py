"""Reports: pure readers of what a replay has written down."""
