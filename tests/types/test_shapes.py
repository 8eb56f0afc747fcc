import json

import msgspec
import pytest

from daypack.types.context import ContextSourceRef
from daypack.types.shapes import Omission


@pytest.mark.parametrize(
    "selector",
    [
        "messages:12-18",
        {"type": "text_quote", "exact": "Ship it", "prefix": "Now: ", "suffix": "."},
        [{"type": "page_region", "value": "3"}, {"type": "byte_range", "start": 0, "end": 512}],
    ],
)
def test_a_selector_is_a_source_reference_one_selector_or_several(selector: object):
    document = {"source_id": "s", "uri": "a.md", "source_kind": "file", "selector": selector}
    source = msgspec.convert(document, type=ContextSourceRef)
    assert json.loads(msgspec.json.encode(source)) == {"schema_version": "0.1.1", **document}


@pytest.mark.parametrize("field", ["item_ref", "reason"])
def test_an_omission_names_its_item_and_a_reason(field: str):
    whole = {"item_ref": "item-1", "reason": "stale"}
    assert msgspec.convert(whole, type=Omission).reason == "stale"
    del whole[field]
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(whole, type=Omission)
