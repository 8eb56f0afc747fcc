"""What a caller passes to `prepare`: items, by value or by reference, and the ids of the turn."""
