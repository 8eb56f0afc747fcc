"""Conversations of OpenHands."""
