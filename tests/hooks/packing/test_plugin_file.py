"""The plug-in file of opencode, tested by Node.js: daypack.test.mjs has the tests."""

import os
import shutil
import subprocess
from pathlib import Path

from daypack.hooks.setup.opencode import SCRIPT
from daypack.hooks.setup.plugin_folder import SHIPPED
from tools.agents import NODE


def test_the_plug_in_asks_arranges_and_fails_open(tmp_path: Path) -> None:
    plugin = tmp_path / "daypack.mjs"  # as a module, whatever package is above it
    shutil.copyfile(Path(SHIPPED, SCRIPT), plugin)
    done = subprocess.run(
        [NODE, "--test", Path(__file__).with_name("daypack.test.mjs")],
        env={**os.environ, "PLUGIN": str(plugin), "DAYPACK_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "pass 15" in done.stdout
