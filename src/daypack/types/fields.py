"""Field types: the open vocabularies as strings, and the ranges of numbers.

The known members of a vocabulary appear in the schema as examples, so other values stay valid. They are not in `kinds`
because every command imports that module to read the log, and none of these types is needed for it.
"""

from typing import Annotated

from msgspec import Meta

from daypack.types.kinds import CONTEXT_KINDS, TARGETS, VOCABULARIES

# Of documents; the kinds and targets that daypack itself writes are those of `kinds`.
ContextKind = Annotated[str, Meta(examples=list(CONTEXT_KINDS))]
Target = Annotated[str, Meta(examples=list(TARGETS))]
Scope = Annotated[str, Meta(examples=list(VOCABULARIES["scope"]))]
Lifecycle = Annotated[str, Meta(examples=list(VOCABULARIES["lifecycle"]))]
ContentMode = Annotated[str, Meta(examples=list(VOCABULARIES["content_mode"]))]
SurfaceKind = Annotated[str, Meta(examples=list(VOCABULARIES["surface_kind"]))]
SelectorType = Annotated[str, Meta(examples=list(VOCABULARIES["selector_type"]))]
RankingSignal = Annotated[str, Meta(examples=list(VOCABULARIES["ranking_signal"]))]
OmissionReason = Annotated[str, Meta(examples=list(VOCABULARIES["omission_reason"]))]
OverflowStrategy = Annotated[str, Meta(examples=list(VOCABULARIES["overflow_strategy"]))]
InjectionPoint = Annotated[str, Meta(examples=list(VOCABULARIES["injection_point"]))]
CompactionMethod = Annotated[str, Meta(examples=list(VOCABULARIES["compaction_method"]))]
CompactionTrigger = Annotated[str, Meta(examples=list(VOCABULARIES["compaction_trigger"]))]
ReplacementPolicy = Annotated[str, Meta(examples=list(VOCABULARIES["replacement_policy"]))]
Severity = Annotated[str, Meta(examples=list(VOCABULARIES["severity"]))]
MissingStatus = Annotated[str, Meta(examples=list(VOCABULARIES["missing_status"]))]
RedactionState = Annotated[str, Meta(examples=list(VOCABULARIES["redaction_state"]))]
EventType = Annotated[str, Meta(examples=list(VOCABULARIES["event_type"]))]
RefKind = Annotated[str, Meta(examples=list(VOCABULARIES["ref_kind"]))]
SwapKind = Annotated[str, Meta(examples=list(VOCABULARIES["swap_kind"]))]

Count = Annotated[int, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
