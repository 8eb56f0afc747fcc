"""The settings of a session that is not opened: environment, meta.json, the user's config.toml."""

import os

from daypack.config import Config, from_environment, from_file, settle
from daypack.history.facets import Facets
from daypack.history.layout import Home, Layout


def settings_of(home: Home, layout: Layout) -> Config:
    """Return the settings of a session, live or archived."""
    layers = [("environment", from_environment(os.environ)), (layout.meta, Facets(layout).meta())]
    return settle([*layers, (home.config, from_file(home.config))])
