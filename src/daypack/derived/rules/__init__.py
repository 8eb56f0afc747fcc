"""Standing rules: instructions of the user that last, recognised in messages and kept word for word."""
