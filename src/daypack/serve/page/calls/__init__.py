"""What a call contained, as the page shows it: its items in the order sent, and what was left out."""
