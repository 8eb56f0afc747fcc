"""Examines the memories of a store: what has rotted, and what an import keeps. Values in, findings out; no model."""
