"""Redaction: known secret formats are replaced by markers."""
