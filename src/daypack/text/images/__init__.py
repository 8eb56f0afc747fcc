"""Images: what they cost, and how large they are."""
