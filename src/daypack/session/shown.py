"""What commands and pages may show of a session: its values without secrets."""

from typing import TypeVar

from daypack.history.session import History

_Value = TypeVar("_Value")


def shown(history: History, value: _Value) -> _Value:
    """Return a value of a session without secrets; as it is if redaction is off."""
    if history.config.redaction == "off":
        return value
    from daypack.text.redact.records import redact_any  # noqa: PLC0415 — its patterns cost 20 ms

    return redact_any(value)
