"""Coding agents: their events in, context out; and the plug-in that connects them."""
