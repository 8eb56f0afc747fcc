import pytest
from turn.dialects.library import calling, given, result, user
from turn.histories import messages_of

from daypack.errors import BadInput
from daypack.turn.dialects import NAMES, Given, dialect
from daypack.turn.dialects.tool_calls import Calls, in_order, tool_name
from daypack.types.history import ToolCall


def named(calls: Calls, call_id: str) -> tuple[str, str]:
    return calls.name_call(call_id), calls.name_result(messages_of([result(call_id)])[0])


def test_a_good_id_stays() -> None:
    assert named(Calls(40), "call_1") == ("call_1", "call_1")


@pytest.mark.parametrize("bad", ["x" * 41, "fc:1", "调用", "a b"])
def test_a_bad_id_is_renamed_the_same_way_every_time_for_call_and_result(bad: str) -> None:
    call, answer = named(Calls(40), bad)
    assert call == answer == named(Calls(40), bad)[0] != bad
    assert len(call) <= 40
    assert call.isascii()
    assert " " not in call


def test_an_id_that_comes_again_is_renamed_each_time() -> None:
    calls = Calls(64)
    seen = [named(calls, "call_1") for _ in range(5)]
    assert seen[0] == ("call_1", "call_1")
    assert len({call for call, _ in seen}) == 5
    assert all(call == answer for call, answer in seen)


def test_a_new_name_that_was_taken_before_is_not_given_again() -> None:
    fresh = Calls(64).name_call("a b")
    calls = Calls(64)
    calls.name_call(fresh)
    assert calls.name_call("a b") != fresh


def test_two_calls_of_one_batch_with_one_id_get_their_results_in_order() -> None:
    calls = Calls(64)
    first, second = calls.name_call("a"), calls.name_call("a")
    answers = messages_of([result("a"), result("a")])
    assert [calls.name_result(one) for one in answers] == [first, second]


@pytest.mark.parametrize("name", NAMES)
def test_a_result_without_its_call_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="'b' has no call before it") as caught:
        dialect(name).render(given(user(), calling("a"), result("a"), result("b")))
    assert caught.value.hint
    with pytest.raises(BadInput, match="'a' has no call before it"):
        dialect(name).render(Given(messages=messages_of([user(), calling("a"), result("a"), result("a")])))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("read_file", "read_file"), ("fs.read", "fs_read"), ("a" * 64, "a" * 64), ("say hello", "say_hello")],
)
def test_a_tools_name_keeps_what_it_may(name: str, expected: str) -> None:
    assert tool_name(name) == expected


def test_long_and_unreadable_names_stay_apart() -> None:
    names = ["a" * 65, "a" * 66, "搜索", "读取", "__", "..", "é" * 70]
    made = [tool_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(len(one) <= 64 and one.isascii() for one in made)


def test_calls_stand_behind_the_parts_or_where_the_model_wrote_them() -> None:
    plain = messages_of([calling("a", content=["x", "y"])])[0]
    assert [isinstance(one, ToolCall) for one in in_order(plain)] == [False, False, True]
    placed = calling("a", "b", "c", content=["x", "y"])
    for call, after in zip(placed["tool_calls"], (0, 1, 1), strict=True):
        call["meta"] = {"after": after}
    order = [
        one.id if isinstance(one, ToolCall) else getattr(one, "text", "") for one in in_order(*messages_of([placed]))
    ]
    assert order == ["a", "x", "b", "c", "y"]
