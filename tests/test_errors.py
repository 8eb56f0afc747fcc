"""Every error says what was attempted, where, why and what to do."""

import inspect

import pytest

from daypack import errors
from daypack.errors import DaypackError, StorageFailed


def test_an_error_reads_as_operation_place_problem_and_hint() -> None:
    error = StorageFailed("no space", operation="append", place="messages.jsonl", hint="free some")
    assert str(error) == "append: messages.jsonl: no space (hint: free some)"
    assert str(StorageFailed("no space")) == "no space"


def test_an_error_keeps_its_cause() -> None:
    def fail() -> None:
        try:
            raise OSError(28, "No space left on device")
        except OSError as cause:
            raise StorageFailed("no space") from cause

    with pytest.raises(StorageFailed) as caught:
        fail()
    assert isinstance(caught.value.cause, OSError)


def test_every_error_is_in_the_tree_at_the_top_of_its_file() -> None:
    named = [name for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    missing = [name for name in named if name not in (errors.__doc__ or "")]
    assert missing == []
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    assert all(issubclass(kind, (DaypackError, Warning)) for kind in kinds)
