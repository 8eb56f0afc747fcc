"""Import transcripts of other agents."""
