"""One turn: from history to what is sent to a model, and back."""
