"""Sessions in PostgreSQL: their logs are there, and a local folder is a cache of them."""
