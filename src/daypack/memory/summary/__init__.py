"""The one summary of an entry, without a model or with one."""
