"""The site made from the documentation: it is whole, its links work, and a broken one fails the build."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.site import FILES, ROOT, Site

GROUPS = {"All": ("README.md", "docs/one.md")}


class Reader(HTMLParser):
    """Collects the ids, the links and the resources of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.resources: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        elif tag in ("img", "script", "link", "source", "iframe"):
            self.resources.append(values.get("src") or values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    built = Site(ROOT)
    built.build(folder)
    assert built.broken == []
    return folder


def test_every_page_is_there_and_reachable_from_every_other(site: Path) -> None:
    pages = {path.name: Reader(path) for path in site.glob("*.html")}
    assert {"index.html", *(f"{path.stem}.html" for path in ROOT.glob("docs/*.md"))} <= pages.keys()
    for name, page in pages.items():
        assert pages.keys() - {"schemas.html"} <= {*page.links}, name


def test_every_link_of_the_site_leads_to_a_file_and_an_id(site: Path) -> None:
    pages = {path.name: Reader(path) for path in site.glob("*.html")}
    missing: list[str] = []
    checked = 0
    for name, page in pages.items():
        assert len(page.ids) == len({*page.ids}), name
        for link in (*page.links, *page.resources):
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = unquote(parts.path) or name
            known = target in pages and (not parts.fragment or unquote(parts.fragment) in pages[target].ids)
            checked += 1
            if not known and (parts.fragment or not (site / target).is_file()):
                missing.append(f"{name}: {link}")
    assert missing == []
    assert checked > 500


def test_the_site_needs_no_other_server_and_no_script(site: Path) -> None:
    for path in site.glob("*.html"):
        page = Reader(path)
        assert [resource for resource in page.resources if urlsplit(resource).netloc or "script" in resource] == []
        assert "<script" not in path.read_text(encoding="utf-8")
    style = (site / "site.css").read_text(encoding="utf-8")
    assert "@import" not in style
    assert "url(" not in style
    assert "prefers-color-scheme: dark" in style
    assert (site / FILES / "docs" / "window.svg").is_file()


def make(root: Path, text: str, other: str = "# One\n") -> Site:
    """Return the site of two small pages."""
    (root / "docs").mkdir(exist_ok=True)
    (root / "README.md").write_text(f"# Top\n\n{text}\n", encoding="utf-8")
    (root / "docs" / "one.md").write_text(other, encoding="utf-8")
    return Site(root, GROUPS)


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    site = make(
        tmp_path, "", "# One\n\n## `daypack log`: -f, twice\n\n## Ärger_2 & *more*\n\n## Ärger_2 & more\n\n### A/B\n"
    )
    anchors = [heading.anchor for heading in site.pages["docs/one.md"].headings]
    assert anchors == ["one", "daypack-log--f-twice", "ärger_2--more", "ärger_2--more-1", "ab"]


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("docs/two.md", "no such file"),
        ("docs/one.md#two", "docs/one.md has no such heading"),
        ("#nowhere", "README.md has no such heading"),
        ("../outside.md", "is not in the subpath"),
        ("https:///path", "not an address of the web"),
        ("ftp://example.com/x", "not an address of the web"),
        ("//example.com/x", "not an address of the web"),
    ],
)
def test_a_broken_link_is_named_with_its_line_and_nothing_is_written(tmp_path: Path, link: str, problem: str) -> None:
    site = make(tmp_path, f"First.\n\n[text](<{link}>)")
    site.build(tmp_path / "site")
    [broken] = site.broken
    assert broken.startswith(f"README.md:5: broken link {link!r}: ")
    assert problem in broken
    assert not (tmp_path / "site").exists()


def test_good_links_are_kept_or_rewritten(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("text")
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "file.json").write_text("{}")
    links = ("docs/one.md#two", "docs/one.md", "#top", "https://example.com/x?y#z", "LICENSE", "a%20folder")
    site = make(tmp_path, " ".join(f"[text]({link})" for link in links), "# One\n\n## Two\n\n[up](../README.md)\n")
    site.build(tmp_path / "site")
    assert site.broken == []
    assert Reader(tmp_path / "site" / "index.html").links[-6:] == [
        "one.html#two",
        "one.html",
        "#top",
        "https://example.com/x?y#z",
        "files/LICENSE",
        "a folder.html",
    ]
    assert (tmp_path / "site" / "files" / "a folder" / "file.json").is_file()
    assert Reader(tmp_path / "site" / "one.html").links[-1] == "index.html"


def test_a_page_that_the_navigation_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "two.md").write_text("# Two\n")
    assert "docs/two.md: in no group" in make(tmp_path, "").broken[0]


def test_the_command_fails_if_a_link_is_broken(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tools import site;"
        "site.ROOT = Path(sys.argv[1]); sys.exit(site.main([sys.argv[2]]))"
    )
    for source in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md")),
    ):
        (tmp_path / source).parent.mkdir(exist_ok=True)
        (tmp_path / source).write_text("# Page\n\n[text](nowhere.md)\n" if source == "README.md" else "# Page\n")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "README.md").write_text("# Examples\n")
    run = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "site")]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, "README.md:3: broken link 'nowhere.md': no such file\n")
    (tmp_path / "README.md").write_text("# Page\n")
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
