"""Bytes of HTTP before they are a request."""
