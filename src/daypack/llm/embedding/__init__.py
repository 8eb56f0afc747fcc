"""Embeddings: the port, HTTP endpoints, MiniLM and static vectors in this process."""
