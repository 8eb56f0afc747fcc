"""daypack: a context runtime for AI agents."""

__version__ = "0.1.0"
