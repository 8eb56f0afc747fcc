"""Model files: the catalogue, downloads, the local folder."""
