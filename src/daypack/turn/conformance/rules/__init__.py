"""The rules that a conforming envelope follows, by what they are about."""
