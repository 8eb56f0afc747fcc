"""The doctor of memory stores: examine store, accounts and search indexes, plan a repair and apply it."""
