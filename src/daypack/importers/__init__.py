"""Foreign interfaces, one file each: readers of the transcripts of other agents."""
