"""Models: completions and embeddings, from an OpenAI-compatible endpoint or a local file, and the HTTP client."""
