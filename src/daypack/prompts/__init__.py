"""Texts that go to a model: data, not code."""

import os

SHIPPED_PROMPTS = os.path.dirname(__file__)
