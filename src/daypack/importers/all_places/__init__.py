"""Import what is new at all known places, once or as it is written."""
