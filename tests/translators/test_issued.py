"""What a server issued: which events say so, what counts as the same, and what a store forgets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import ConfigurationError, decode_event, typed
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION
from agui_pipeline.translators._issued import IssuedCall, IssuedCalls, IssuedStore, IssuedTranslator, digest

Wire = dict[str, Any]

STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ERROR = {"type": "RUN_ERROR", "message": "m"}


def start(id: Any = "c", name: Any = "f", **more: Any) -> Wire:
    return {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, **more}


def args(delta: Any, id: Any = "c") -> Wire:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta}


def end(id: Any = "c") -> Wire:
    return {"type": "TOOL_CALL_END", "toolCallId": id}


def chunk(**fields: Any) -> Wire:
    return {"type": "TOOL_CALL_CHUNK", **fields}


def result(content: Any = "42", id: Any = "c") -> Wire:
    return {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": id, "content": content}


def history(*messages: Wire) -> Wire:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def watch(*events: Wire, store: IssuedCalls | None = None, models: bool = False, ended: bool = True) -> IssuedCalls:
    store = IssuedCalls() if store is None else store
    translator = IssuedTranslator(store, "t")
    for item in events:
        event: Any = decode_event(item)
        if models:
            event = typed(event)
        assert [id(given) for given in translator.feed(event)] == [id(event)]
    if ended:
        assert list(translator.flush()) == []
    return store


def known(arguments: str | None = "", name: str = "f", **more: Any) -> IssuedCall:
    return IssuedCall((name,), () if arguments is None else (digest(arguments),), **more)


@pytest.mark.parametrize("models", [False, True], ids=["views", "models"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((start(), end()), known()),
        ((start(), args('{"a"'), args(":1}"), end()), known('{"a":1}')),
        ((start(), args("{}")), known("{}")),
        ((start(), args('{"a"'), ERROR), known('{"a"')),
        ((chunk(toolCallId="c", toolCallName="f", delta="[1"), chunk(delta=",2]"), FINISHED), known("[1,2]")),
        ((chunk(toolCallId="c", toolCallName="f"), chunk(toolCallId="c", delta="[3]")), known("[3]")),
        ((start(), end(), result()), known(results=(digest("42"),), answered=True)),
        ((start(), result()), known(results=(digest("42"),), answered=True)),
        ((start(), end(), result(), result("43")), known(results=(digest("42"), digest("43")), answered=True)),
        ((start(), end(), result(), start(), end()), known(results=(digest("42"),), answered=False)),
        ((start(), end(), start(name="g"), args("[1]"), end()), IssuedCall(("f", "g"), (digest(""), digest("[1]")))),
        ((start(), start(name="g"), end()), IssuedCall(("f", "g"), (digest(""),))),
        ((result(),), IssuedCall(results=(digest("42"),), answered=True)),
        ((args("x"), end(), FINISHED), None),
    ],
)
def test_calls_and_results_are_issued_by_their_events(
    events: tuple[Wire, ...], expected: IssuedCall | None, models: bool
) -> None:
    assert watch(*events, models=models).get_call("t", "c") == expected


def test_a_call_is_issued_when_it_is_complete_and_before_the_client_has_its_end() -> None:
    assert watch(start(), args('{"a"'), ended=False).get_call("t", "c") is None
    assert watch(start(), args('{"a":1}'), end(), ended=False).get_call("t", "c") == known('{"a":1}')
    assert watch(chunk(toolCallId="c", toolCallName="f"), FINISHED, ended=False).get_call("t", "c") == known()
    assert watch(start(), ERROR, ended=False).get_call("t", "c") == known()


def test_chunks_of_subagents_are_told_apart() -> None:
    store = watch(
        chunk(toolCallId="c", toolCallName="f", subagentRunId="s", delta="[1"),
        chunk(toolCallId="d", toolCallName="g", subagentRunId="u", delta="[2"),
        chunk(subagentRunId="s", delta="]"),
        chunk(subagentRunId="u", delta="]"),
        chunk(delta="lost, as the client would have it"),
    )
    assert (store.get_call("t", "c"), store.get_call("t", "d")) == (known("[1]"), known("[2]", "g"))
    alone = watch(chunk(toolCallId="c", toolCallName="f", subagentRunId="s", delta="[1"), chunk(delta="]"))
    assert alone.get_call("t", "c") == known("[1]")


@pytest.mark.parametrize("models", [False, True], ids=["views", "models"])
def test_a_snapshot_issues_what_it_holds_but_answers_nothing(models: bool) -> None:
    called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[1]"}}
    messages = (
        {"id": "u", "role": "user", "content": "hi"},
        {"id": "a", "role": "assistant", "toolCalls": [called]},
        {"id": "b", "role": "assistant", "content": "no calls"},
        {"id": "r", "role": "tool", "toolCallId": "c", "content": "42"},
    )
    told = known("[1]", results=(digest("42"),))
    assert watch(history(*messages), models=models).get_call("t", "c") == told
    assert watch(start(), end(), result("0"), history(*messages), models=models).get_call("t", "c") == IssuedCall(
        ("f",), (digest(""), digest("[1]")), (digest("0"), digest("42")), answered=True
    )
    seeded = IssuedCalls()
    seeded.remember("t", messages)
    assert seeded.get_call("t", "c") == told


def test_what_a_client_said_is_not_issued_by_its_echo() -> None:
    called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[1]"}}
    echo = {"messages": [{"id": "a", "role": "assistant", "toolCalls": [called]}]}
    assert watch(STARTED | {"input": echo}, FINISHED).get_call("t", "c") is None


@pytest.mark.parametrize(
    ("event", "issued"),
    [
        (FINISHED | {"outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r"}, {"id": "j"}]}}, "ij*"),
        ({"type": "CUSTOM", "name": "on_interrupt", "value": "{}"}, "*"),
        ({"type": "CUSTOM", "name": "other", "value": {"id": "i"}}, ""),
        (FINISHED | {"outcome": {"type": "success"}}, ""),
        (FINISHED | {"outcome": "interrupt"}, ""),
        (FINISHED | {"outcome": {"type": "interrupt", "interrupts": [None, {"id": 1}, "i"]}}, ""),
        (FINISHED, ""),
    ],
)
def test_interrupts(event: Wire, issued: str) -> None:
    store = watch(event)
    assert [id for id in ("i", "j", "k") if store.has_interrupt("t", id)] == [id for id in issued if id != "*"]
    assert store.has_interrupt("t", None) is ("*" in issued)
    assert not store.has_interrupt("u", None)


@pytest.mark.skipif(not HAS_PROTOCOL_VERSION, reason="the SDK's 1.x only")
def test_interrupts_of_models() -> None:
    interrupt = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r"}]}
    assert watch(FINISHED | {"outcome": interrupt}, models=True).has_interrupt("t", "i")


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 7, "", "c", [], {}, [None], [{}], {"interrupts": 1}, [{"role": "tool"}], [{"role": []}]]
)


@given(
    st.lists(
        st.builds(
            lambda name, more: {"type": name, **more},
            st.sampled_from(
                [
                    *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT"),
                    *("MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED", "RUN_ERROR", "RAW", "UNKNOWN"),
                ]
            ),
            st.dictionaries(
                st.sampled_from(
                    ["toolCallId", "toolCallName", "delta", "content", "messages", "outcome", "name", "subagentRunId"]
                ),
                ODD,
            ),
        ),
        max_size=12,
    )
)
def test_no_event_breaks_the_watch_and_all_pass(events: list[Wire]) -> None:
    watch(*events)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [1.0]}', '{"b":[1],"a":1.0}', True),
        ('{"a":"\\u00e9"}', '{"a":"é"}', True),
        ("", "{}", True),
        ("{}", " { } ", True),
        ("[]", "{}", False),
        ('{"a":1}', '{"a":2}', False),
        ('{"a":1}', '{"a":"1"}', False),
        ('{"a":1}', '{"a":true}', False),
        ("plain", "plain", True),
        ("plain", " plain", False),
        ("1", "1.0", False),
        ('{"a', '{"a', True),
        ('{"a', '{"a ', False),
        ("[" * 20_000, "[" * 20_000, True),
        ('["' + "x" * 70_000 + '"]', '[ "' + "x" * 70_000 + '"]', False),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a", "id": "1", "metadata": {}}], True),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}], False),
        (
            [{"type": "image", "source": {"type": "url", "value": "https://a"}}],
            [{"type": "image", "source": {"type": "url", "value": "https://b"}}],
            False,
        ),
        ("\ud800", "\ud800", True),
        ("\ud800", "\ud801", False),
    ],
    ids=lambda value: str(value)[:20].encode(errors="replace").decode(),
)
def test_what_counts_as_the_same_arguments_or_result(one: Any, other: Any, same: bool) -> None:
    assert (digest(one) == digest(other)) is same


@given(
    st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9), st.lists, max_leaves=9)
)
def test_json_that_is_written_anew_is_the_same(value: Any) -> None:
    assert digest(json.dumps([value])) == digest(json.dumps([value], separators=(",", ":"), ensure_ascii=False))


def test_arguments_that_are_too_long_to_hold_are_not_compared() -> None:
    event = args("x" * 1_000_000)
    assert watch(start(), *[event] * 5, end()).get_call("t", "c") == known(None)


def test_of_one_id_the_last_versions_are_known() -> None:
    store = watch(*(event for i in range(20) for event in (start(), args(f"[{i}]"), end(), result(str(i)))))
    call = store.get_call("t", "c")
    assert call is not None
    assert call.arguments == tuple(digest(f"[{i}]") for i in range(12, 20))
    assert call.results == tuple(digest(str(i)) for i in range(12, 20))


# The store.


def test_the_thread_that_was_not_used_for_longest_is_forgotten() -> None:
    store = IssuedCalls(max_threads=2)
    store.put_call("a", "c", IssuedCall())
    store.put_interrupt("b", "i")
    assert store.get_call("a", "c") == IssuedCall()  # which uses it
    store.put_interrupt("c", "i")
    assert store.get_call("a", "c") == IssuedCall()
    assert not store.has_interrupt("b", "i")
    assert store.has_interrupt("c", "i")


def test_asking_for_an_unknown_thread_does_not_make_one() -> None:
    store = IssuedCalls(max_threads=1)
    store.put_interrupt("a", "i")
    assert store.get_call("b", "c") is None
    assert not store.has_interrupt("b", None)
    assert store.has_interrupt("a", "i")


def test_calls_are_bounded_over_all_threads_and_in_each() -> None:
    store = IssuedCalls(max_calls=3)
    for key, call in ("a1", "b1", "b2", "b3"):
        store.put_call(key, call, IssuedCall())
    assert [store.get_call(key, call) is not None for key, call in ("a1", "b1", "b2", "b3")] == [
        False,
        True,
        True,
        True,
    ]
    store.put_call("b", "1", IssuedCall())  # known, and now the newest
    store.put_call("b", "4", IssuedCall())
    assert [store.get_call("b", call) is not None for call in "1234"] == [True, False, True, True]
    large = IssuedCalls()
    for i in range(1_001):
        large.put_call("a", str(i), IssuedCall())
        large.put_interrupt("a", str(i))
    assert [large.get_call("a", str(i)) is not None for i in (0, 1)] == [False, True]
    assert [large.has_interrupt("a", str(i)) for i in (900, 901)] == [False, True]


def test_forgotten_calls_make_room() -> None:
    store = IssuedCalls(max_calls=2)
    store.put_call("a", "1", IssuedCall())
    store.clear("a")
    store.clear("never there")
    assert store.get_call("a", "1") is None
    store.put_call("b", "1", IssuedCall())
    store.put_call("c", "1", IssuedCall())
    assert store.get_call("b", "1") == IssuedCall()
    store.clear()
    assert store.get_call("b", "1") is None
    store.put_call("b", "1", IssuedCall())
    store.put_call("c", "1", IssuedCall())
    assert store.get_call("b", "1") == IssuedCall()


def test_a_long_key_is_kept_by_its_digest() -> None:
    store = IssuedCalls()
    store.put_call("x" * 1_000_000, "c", IssuedCall())
    assert store.get_call("x" * 1_000_000, "c") == IssuedCall()
    assert store.get_call("x" * 999_999, "c") is None
    assert max(map(len, store._threads)) == 129


@pytest.mark.parametrize("option", ["max_threads", "max_calls"])
@pytest.mark.parametrize("value", [0, True, 1.5, "9"])
def test_a_bound_is_an_integer_of_at_least_one(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"IssuedCalls\({option}="):
        IssuedCalls(**{option: value})


def test_the_store_is_one_of_any() -> None:
    assert isinstance(IssuedCalls(), IssuedStore)
    assert not isinstance({}, IssuedStore)
