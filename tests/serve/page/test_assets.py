"""The files of the page: joined by rules, named by their contents, small enough, with their licences."""

import gzip
import os
import re
from hashlib import sha256

import pytest

from daypack.serve.page import assets
from daypack.serve.page.assets import FOLDER, BrokenModule, bundle, join, order


def imports_of(name: str) -> list[str]:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return re.findall(r'^import .* from "\./(.*)";$', file.read(), re.MULTILINE)


VENDOR = "const a = 1, b = 2; export { a as one, b };"


def test_every_module_is_joined_after_those_it_imports() -> None:
    modules = bundle().modules
    found = {
        os.path.relpath(os.path.join(folder, name), FOLDER) for folder, _, names in os.walk(FOLDER) for name in names
    }
    assert set(modules) == {name for name in found if name.endswith(".js")}
    assert modules[-1] == "page.js"
    sources = {name: imports_of(name) for name in modules}
    for at, name in enumerate(modules):
        # Two that import each other are in one script all the same: functions are hoisted.
        assert all(source in modules[:at] or name in sources[source] for source in sources[name])


def test_the_script_has_no_import_and_no_export_left() -> None:
    script = bundle().script
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    assert "https://" not in re.sub(r"//.*|/\*.*?\*/", "", script)


def test_modules_become_one_script() -> None:
    modules = {
        "page.js": 'import { one } from "./vendor/v.js";\nimport { two } from "./x.js";\nconst all = one + two();\n',
        "x.js": 'import { b } from "./vendor/v.js";\nexport function two() {\n  return b;\n}\n',
        "vendor/v.js": VENDOR,
    }
    assert order(modules) == ["vendor/v.js", "x.js", "page.js"]
    script = join(modules)
    assert "const { b, one } = (() => {\nconst a = 1, b = 2; \nreturn { b: b, one: a };\n})();" in script
    assert "function two() {\n  return b;\n}" in script
    assert "export" not in script
    assert "import" not in script


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import {\n  one\n} from './vendor/v.js';", "page.js:1: an import must be one line"),
        ('import { one as two } from "./vendor/v.js";', "an import must be one line"),
        ('import all from "./vendor/v.js";', "an import must be one line"),
        ('import "./vendor/v.js";', "an import must be one line"),
        ('import { x } from "./missing.js";', "imports missing.js, which does not exist"),
        ('import { nothing } from "./vendor/v.js";', "vendor/v.js: does not export nothing"),
        ('import { hidden } from "./x.js";', "x.js: does not export hidden"),
        ("export default 1;", "page.js:1: export must directly precede"),
        ("const q = 1;\nexport { q };", "page.js:2: export must directly precede"),
        ('export * from "./x.js";', "export must directly precede"),
        ("const hidden = 1;", "hidden is declared by both page.js and x.js"),
        ('import { one } from "./vendor/v.js";\nfunction one() {}', "one is declared by both"),
    ],
)
def test_a_module_that_breaks_a_rule_is_named(text: str, problem: str) -> None:
    modules = {"page.js": text, "x.js": "const hidden = 1;\nexport const shown = 2;\n", "vendor/v.js": VENDOR}
    with pytest.raises(BrokenModule, match=re.escape(problem)):
        join(modules)


def test_assets_have_the_hash_of_their_contents_in_their_names() -> None:
    made = assets.assets()
    shell = made.shell.decode()
    assert re.findall(r'(?:src|href)="/page/assets/([^"]+)"', shell) == list(made.files)[::-1]
    assert not re.search(r'(?:src|href)="(?!/page/assets/|data:)', shell)
    for name, asset in made.files.items():
        assert sha256(asset.data).hexdigest()[:16] in name
        assert gzip.decompress(asset.packed) == asset.data


def test_the_shell_has_nothing_inline_that_its_policy_forbids() -> None:
    shell = assets.assets().shell.decode()
    assert not re.search(r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son\w+=|javascript:", shell)


def test_the_licences_of_vendored_code_are_beside_it() -> None:
    vendored = os.listdir(os.path.join(FOLDER, "vendor"))
    assert {"LICENSE.htm", "LICENSE.preact", "preact.js"} <= set(vendored)
