"""Observed turns: calls that another program made and recorded, rebuilt, explained and compared like our own."""
