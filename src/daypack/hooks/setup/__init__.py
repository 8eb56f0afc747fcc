"""`daypack setup`: find the coding agents, connect them, import what happened before, and take it back."""
