"""What a compiler made: the container and its instructions."""
