"""What is made from history and can be made again: everything under `context/`."""
