"""What was decided about files: found when a session is taken in, looked up before an agent edits one of them."""
