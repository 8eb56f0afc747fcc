"""Taking in the sessions of coding agents: in a process of its own, from transcript to memory."""
