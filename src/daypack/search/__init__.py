"""Ranking: texts in, ranked ids with the parts of their scores out."""
