"""Models: one port, any OpenAI-compatible endpoint or a GGUF file behind it, and where such files come from."""
