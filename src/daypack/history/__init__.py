"""The truth: append-only logs of one session, and every path they live at."""
