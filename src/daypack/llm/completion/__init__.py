"""Completions: the port, HTTP endpoints, llama.cpp in this process."""
