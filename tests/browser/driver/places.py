"""Where things are in the page: by role and label where they have one."""

ROW = "[role=row][data-row]"
TITLE = f"{ROW} a"
STRIP = "[role=slider][aria-label^=Calls]"
ITEM = "article.item"
ITEM_NAME = f"{ITEM} button[aria-expanded]"
RAW = "[aria-label='Raw request']"
DIFFERENCE = "section[aria-label=Calls] select"
MESSAGE = "article.message"
CHOSEN = f"{MESSAGE}[aria-current=true]"
CARD = "main ol li a[href*='/compactions/']"
DETAIL = "article.detail"
DIALOG = "dialog[open]"
PROBLEM = "[role=alert]"


def panel(title: str) -> str:
    """Return the selector of a part of a view by its title."""
    return f'section[aria-label="{title}"]'


LEFT_OUT, MISSING, CACHE, FIT = map(panel, ("Left out", "Missing context", "Prompt cache", "Would it fit?"))
SLIDER = f"{FIT} input[type=range]"
