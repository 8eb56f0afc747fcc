"""Recaps: what hooks say about a session later, computed when its transcript is taken in."""
