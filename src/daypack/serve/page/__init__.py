"""The inspector: a page that shows what the model saw, for sessions of daypack and of other programs."""
