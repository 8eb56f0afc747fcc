"""The record of a turn, and everything that is read back from it: replay, envelope, export, explanations."""
