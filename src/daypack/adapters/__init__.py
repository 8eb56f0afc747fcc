"""Adapters: daypack inside the agents and frameworks of others, one module each."""
