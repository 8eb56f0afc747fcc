"""What a list shows of each session, without opening it."""
