"""Row readers: one module for each format of transcripts."""
