"""Envelope documents of any runtime: what is in them, and the rules they must follow.

Works on plain JSON values, so that a document need not fit the types of this package.
"""
