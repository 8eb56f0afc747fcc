"""Copies sessions and memories between the files of a home and a database, verified and resumable."""
