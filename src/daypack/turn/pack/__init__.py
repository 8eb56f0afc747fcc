"""The pure stages of a turn: select, fit, assemble, inject."""
