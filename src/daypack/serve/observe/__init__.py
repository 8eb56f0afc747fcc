"""What a server reports about itself: log lines, metrics, and the facts of a request that both use."""
