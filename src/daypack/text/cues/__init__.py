"""Cues: what a sentence is for, by its words."""
