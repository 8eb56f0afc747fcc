"""A scripted agent in a small window, from its first message to the replay of every call: `python -m demo`."""
