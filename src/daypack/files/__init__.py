"""Bytes on disk: this package knows no word of the domain."""
