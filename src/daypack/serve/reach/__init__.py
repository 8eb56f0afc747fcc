"""How a server is reached from other machines: TLS, proxies in front of it, and what remote clients learn about it."""
