"""Search indexes in files: one folder for each memory.

<folder>/words.sqlite       the words of entries
<folder>/documents.sqlite   the words of the context document's versions
<folder>/vectors-…/         the vectors of entries, if there is an embedder (see `vectors`)
<folder>/skipped.json       what the index lacks because it is damaged in the store (see `skipped`)
"""

import os
import shutil
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from daypack.files.atomic import discard
from daypack.memory.search.index import POSTINGS, IndexParts
from daypack.memory.search.lookup import WORDS
from daypack.memory.search.skipped import Skipped, SkippedFile
from daypack.memory.search.vectors import EntryVectors
from daypack.memory.store.port import StoreFeed
from daypack.search.lexical import Lexical

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder

DOCUMENTS = "documents.sqlite"


class IndexFiles:
    """The indexes below `folder`, each in a folder with the id of its memory."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, feed: StoreFeed, embedder: "Embedder | None") -> IndexParts:
        """Return the files of the memory that `feed` reads."""
        return index_files(os.path.join(self._folder, feed.memory_id), embedder)

    def erase(self, memory_id: str) -> None:
        """Remove the files of a memory."""
        erase_index(os.path.join(self._folder, memory_id))


def index_files(folder: str, embedder: "Embedder | None" = None) -> IndexParts:
    """Return the parts of the index in `folder`; no file is opened yet."""
    return IndexParts(
        Lexical(os.path.join(folder, WORDS), postings=POSTINGS),
        Lexical(os.path.join(folder, DOCUMENTS)),
        EntryVectors(folder, embedder) if embedder else None,
        Skipped(SkippedFile(folder)),
        partial(erase_index, folder),
    )


def erase_index(folder: str) -> None:
    """Remove the files of an index."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder), reverse=True):  # journals before their database
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                discard(path)
        with suppress(OSError):
            os.rmdir(folder)
