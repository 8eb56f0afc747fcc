"""Import transcripts of other agents; one reader module per format."""
