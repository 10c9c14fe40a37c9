"""What warps wait for, to whom it is charged, and where most of it is: read off replays."""
