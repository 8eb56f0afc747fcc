"""Build a static site from the pages of the documentation, and fail if a link of theirs is broken.

python -m tools.site build/site
"""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name  # pyright: ignore — it has no types

ROOT = Path(__file__).resolve().parents[1]
STYLE = Path(__file__).with_name("site.css")
# The pages in the order of the navigation, by what a reader wants.
GROUPS = {
    "Start": ("README.md", "docs/guide.md", "docs/agents.md", "docs/view.md", "examples/README.md"),
    "Look up": ("docs/cli.md", "docs/errors.md", "docs/mistakes.md", "docs/glossary.md"),
    "Understand": (
        "docs/design.md",
        "docs/format.md",
        "docs/envelope.md",
        "docs/map.md",
        "docs/figures.md",
        "docs/scale.md",
    ),
    "Take part": ("CONTRIBUTING.md", "CHANGELOG.md"),
}
FILES = "files"  # the folder of linked files that are no pages
_SCHEMES = {"http", "https"}
_COLOURED = {"python": "python", "json": "json", "jsonl": "json", "toml": "toml"}


class Heading(NamedTuple):
    """A heading, with the anchor by which GitHub links to it."""

    level: int
    text: str
    anchor: str


class Page(NamedTuple):
    """A page of the documentation: its path in the repository, and its parsed text."""

    source: str
    tokens: Sequence[Token]
    headings: Sequence[Heading]

    @property
    def name(self) -> str:
        """The name of its file in the site."""
        if self.source == "README.md":
            return "index.html"
        path = Path(self.source)
        return f"{(path.parent if path.stem == 'README' else path).stem.lower()}.html"

    @property
    def title(self) -> str:
        """Its first heading."""
        return self.headings[0].text if self.headings else self.source


class Site:
    """The pages of a repository, as HTML; `broken` lists the links that lead nowhere."""

    def __init__(self, root: Path, groups: dict[str, tuple[str, ...]] = GROUPS) -> None:
        self.root = root
        self.broken: list[str] = []
        self.files: set[str] = set()
        self._folders: set[str] = set()  # that are linked as such
        self._groups = groups
        self._markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlight}).enable(
            ["table", "strikethrough"]
        )
        self.pages = {source: self._parse(source) for sources in groups.values() for source in sources}
        self._check_complete()

    def build(self, folder: Path) -> None:
        """Write the site into a new folder; an existing one is replaced. If a link is broken, nothing is written."""
        made = {page.name: self._render(page) for page in self.pages.values()}
        made |= {_listing(source): self._list(source) for source in self._folders}
        if self.broken:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in made.items():
            (folder / name).write_text(text, encoding="utf-8")
        for file in self.files:
            target = folder / FILES / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / file, target)
        dark = f"@media (prefers-color-scheme: dark) {{\n{_colours('github-dark')}\n}}"
        styles = (STYLE.read_text(encoding="utf-8"), _colours("default"), dark)
        (folder / "site.css").write_text("\n".join(styles), encoding="utf-8")

    def _parse(self, source: str) -> Page:
        tokens = self._markdown.parse((self.root / source).read_text(encoding="utf-8"))
        headings = list(_headings(tokens))
        return Page(source, tokens, headings)

    def _check_complete(self) -> None:
        for path in sorted(self.root.glob("docs/*.md")):
            if (source := path.relative_to(self.root).as_posix()) not in self.pages:
                self.broken.append(f"{source}: in no group of the navigation (GROUPS in tools/site.py)")

    # Links

    def _follow(self, page: Page, link: str, line: int) -> str:
        """Return where a link of a page leads in the site; note it if it leads nowhere."""
        try:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                if parts.scheme in _SCHEMES and parts.hostname and not re.search(r"\s", link):
                    return link
                raise ValueError("not an address of the web")
            path = (self.root / page.source).parent / unquote(parts.path) if parts.path else self.root / page.source
            source = path.resolve().relative_to(self.root.resolve()).as_posix()
            if (found := self.pages.get(source) or self.pages.get(f"{source}/README.md")) is not None:
                if parts.fragment and unquote(parts.fragment) not in {heading.anchor for heading in found.headings}:
                    raise ValueError(f"{found.source} has no such heading")
                name = "" if found is page and parts.fragment else found.name
                return name + (f"#{parts.fragment}" if parts.fragment else "")
            if (self.root / source).is_dir():
                self._folders.add(source)
                return _listing(source)
            if not (self.root / source).is_file():
                raise ValueError("no such file")
        except ValueError as error:
            self.broken.append(f"{page.source}:{line}: broken link {link!r}: {error}")
            return "#"
        self.files.add(source)
        return f"{FILES}/{quote(source)}"

    # HTML

    def _render(self, page: Page) -> str:
        anchors = iter(page.headings)
        for token in page.tokens:
            line = (token.map or [0])[0] + 1
            if token.type == "heading_open":
                token.attrSet("id", next(anchors).anchor)
            for inner in token.children or ():
                for name in ("href", "src"):
                    if (link := inner.attrGet(name)) is not None:
                        inner.attrSet(name, self._follow(page, str(link), line))
        body = self._markdown.renderer.render(page.tokens, self._markdown.options, {})
        body = re.sub(r"<table>.*?</table>", r'<div class="wide">\g<0></div>', body, flags=re.DOTALL)
        body = re.sub(r'<(h[2-6]) id="([^"]*)">(.*?)</\1>', _with_link, body, flags=re.DOTALL)
        title = page.title if page.name == "index.html" else f"{page.title} · daypack"
        return _PAGE.format(title=escape(title), navigation=self._navigation(page), body=body)

    def _list(self, source: str) -> str:
        """Return a page with links to the files of a folder."""
        files = sorted(path.name for path in (self.root / source).iterdir() if path.is_file())
        self.files |= {f"{source}/{name}" for name in files}
        links = (f'<li><a href="{FILES}/{quote(f"{source}/{name}")}">{escape(name)}</a></li>' for name in files)
        body = f"<h1>{escape(source)}</h1>\n<ul>{''.join(links)}</ul>"
        return _PAGE.format(title=f"{escape(source)} · daypack", navigation=self._navigation(None), body=body)

    def _navigation(self, page: Page | None) -> str:
        lines: list[str] = []
        for group, sources in self._groups.items():
            lines.append(f"<h2>{escape(group)}</h2>\n<ul>")
            for other in (self.pages[source] for source in sources):
                here = ' aria-current="page"' if other is page else ""
                title = "Overview" if other.name == "index.html" else escape(other.title)
                lines.append(f'<li><a href="{other.name}"{here}>{title}</a>')
                sections = [heading for heading in other.headings if heading.level == 2] if other is page else []
                if sections:
                    links = "".join(
                        f'<li><a href="#{section.anchor}">{escape(section.text)}</a></li>' for section in sections
                    )
                    lines.append(f"<ul>{links}</ul>")
                lines.append("</li>")
            lines.append("</ul>")
        return "\n".join(lines)


_PAGE = """<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="site.css">
</head>
<body>
<nav aria-label="Pages">
<a class="name" href="index.html">daypack</a>
{navigation}
</nav>
<main>
{body}
</main>
</body>
</html>
"""


def _headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Yield the headings with their anchors, which GitHub numbers where a text is repeated."""
    seen: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
            anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen[anchor] = seen.get(anchor, -1) + 1
            yield Heading(int(token.tag[1]), text, f"{anchor}-{count}" if count else anchor)


def _colours(style: str) -> str:
    return str(HtmlFormatter[str](style=style).get_style_defs(".code"))  # pyright: ignore — it has no types


def _listing(folder: str) -> str:
    return f"{folder.replace('/', '-')}.html"


def _with_link(heading: re.Match[str]) -> str:
    tag, anchor, text = heading.groups()
    link = f'<a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a>'
    return f'<{tag} id="{anchor}">{text} {link}</{tag}>'


def _highlight(code: str, language: str, _: str) -> str:
    """Return a fenced block as HTML; what is typed and printed in a shell stays plain."""
    inner = escape(code, quote=False)
    if language in _COLOURED:
        inner = highlight(code, get_lexer_by_name(_COLOURED[language]), HtmlFormatter[str](nowrap=True))
    return f'<pre class="code"><code>{inner}</code></pre>'


def main(arguments: Sequence[str]) -> int:
    """Build the site; exit with 1 and a list if links are broken."""
    site = Site(ROOT)
    site.build(Path(arguments[0] if arguments else "build/site"))
    for problem in site.broken:
        print(problem, file=sys.stderr)
    if not site.broken:
        print(f"{len(site.pages)} pages in {arguments[0] if arguments else 'build/site'}; every link leads somewhere")
    return 1 if site.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
