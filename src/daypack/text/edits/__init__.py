"""Values set in and removed from settings texts, every other byte unchanged."""
