"""Replies of models: stored whole or broken off, with their usage and the snapshots in them."""
