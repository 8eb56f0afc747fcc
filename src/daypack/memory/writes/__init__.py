"""What is known about writes: signed positions, and the writes through this process."""
