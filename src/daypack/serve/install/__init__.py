"""Adding this server to the configuration files of other programs."""
