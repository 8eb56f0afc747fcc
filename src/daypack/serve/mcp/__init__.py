"""The parts of MCP that both transports share: messages, versions, prompts and resources, request routing."""
