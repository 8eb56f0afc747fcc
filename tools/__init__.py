"""Commands for those who work on daypack; nothing here is installed."""
