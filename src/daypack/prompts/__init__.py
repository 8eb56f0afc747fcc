"""Texts that go to a model: data, not code."""
