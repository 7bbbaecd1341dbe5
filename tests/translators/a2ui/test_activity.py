"""The activity carrier: what a renderer is shown of a surface, when, and under which id."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import Diagnostic
from agui_pipeline.translators.a2ui import A2UILimits, SurfaceRegistry, _surface
from agui_pipeline.translators.a2ui._surface import MAX_OPERATIONS
from tests.translators.a2ui.streams import (
    BEGIN,
    CATALOG,
    DATA,
    DELETE,
    UPDATE,
    Result,
    Wire,
    activity,
    chunk,
    components,
    create,
    data,
    delete,
    lines,
    message,
    raw,
    run_of,
    translate,
)


class Thread:
    """Runs of one thread through one middleware."""

    def __init__(self, **options: Any) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.middleware = A2UIMiddleware(carrier="activity", **options, on_diagnostic=self.diagnostics.append)

    def run(self, *messages: Any, id: str = "m", thread_id: str = "t") -> list[Wire]:
        """Run an agent that says these messages in one text; return the snapshots."""
        events = run_of(*message(lines(*messages), id=id))
        result = translate(events, self.middleware, thread_id=thread_id)
        assert (result.events[0], result.events[-1]) == (events[0], events[-1])
        return result.events[1:-1]

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.diagnostics]


def shown(snapshot: Wire) -> list[Wire]:
    operations: list[Wire] = snapshot["content"]["a2ui_operations"]
    return operations


def one(*messages: Any, **options: Any) -> Result:
    return translate(run_of(*message(lines(*messages))), carrier="activity", **options)


# What is shown, and when


def test_a_surface_is_shown_once_it_was_created_and_has_components() -> None:
    assert Thread().run(create(), data({"a": 1}), components()) == [
        activity("a2ui-surface-m", create(), components(), data({"a": 1}))
    ]


def test_in_v08_in_any_order() -> None:
    for order in ([BEGIN, DATA, UPDATE], [UPDATE, DATA, BEGIN], [DATA, UPDATE, BEGIN]):
        assert Thread().run(*order) == [activity("a2ui-surface-m", BEGIN, UPDATE, DATA)]


def test_each_change_is_shown_with_all_that_was_before_it() -> None:
    assert Thread().run(create(), components(), data(1, "/a"), data(2, "/b")) == [
        activity("a2ui-surface-m", create(), components()),
        activity("a2ui-surface-m", create(), components(), data(1, "/a")),
        activity("a2ui-surface-m", create(), components(), data(1, "/a"), data(2, "/b")),
    ]


def test_components_come_to_one_message() -> None:
    """The v0.8 renderers refuse one that refers to components outside it."""
    first, second = components("root", "a"), components("a", "b", text="new")
    merged = components("root", "a", "b")
    for component in merged["updateComponents"]["components"][1:]:
        component["text"] = "new"
    assert Thread().run(create(), first, second)[-1] == activity("a2ui-surface-m", create(), merged)


def test_in_v08_too() -> None:
    more = {"surfaceUpdate": {"surfaceId": "s", "components": [{"id": "b", "component": {"Divider": {}}}]}}
    merged = {
        "surfaceUpdate": {
            "surfaceId": "s",
            "components": UPDATE["surfaceUpdate"]["components"] + more["surfaceUpdate"]["components"],
        }
    }
    assert Thread().run(BEGIN, UPDATE, more)[-1] == activity("a2ui-surface-m", BEGIN, merged)


def test_an_update_may_leave_out_the_type_of_a_known_component() -> None:
    update = {
        "version": "v0.9.1",
        "updateComponents": {"surfaceId": "s", "components": [{"id": "root", "text": "new"}]},
    }
    expected = components(text="new", version="v0.9.1")
    assert json.dumps(Thread().run(create(), components(), update)[-1], sort_keys=True) == json.dumps(
        activity("a2ui-surface-m", create(), expected), sort_keys=True
    )


@pytest.mark.parametrize("again", [components(), data(1, "/a")], ids=["components", "data"])
def test_what_changes_nothing_is_not_shown_again(again: Wire) -> None:
    thread = Thread()
    before = thread.run(create(), components(), data(1, "/a"))
    assert Thread().run(create(), components(), data(1, "/a"), again, again) == before


def test_true_is_not_1() -> None:
    assert len(Thread().run(create(), components(), data(1), data(True), data(1.0))) == 4


def test_data_that_was_overwritten_is_left_out() -> None:
    last = Thread().run(create(), components(), data(1, "/a/b"), data(2, "/x"), data({"c": 3}, "/a"), data(4, "/x"))[-1]
    assert shown(last)[2:] == [data({"c": 3}, "/a"), data(4, "/x")]
    root = Thread().run(
        create(), components(), data(1, "/a"), {**data(0), "updateDataModel": {"surfaceId": "s", "value": {}}}
    )
    assert len(shown(root[-1])) == 3


def test_data_below_what_was_set_stays_behind_it() -> None:
    last = Thread().run(create(), components(), data({}, "/a"), data(1, "/a/b"), data(2, "/ab"))[-1]
    assert shown(last)[2:] == [data({}, "/a"), data(1, "/a/b"), data(2, "/ab")]


def v08_data(path: str | None, *keys: str, value: str = "x") -> Wire:
    where = {} if path is None else {"path": path}
    contents = [{"key": key, "valueString": value} for key in keys]
    return {"dataModelUpdate": {"surfaceId": "s", **where, "contents": contents}}


def test_v08_data_is_left_out_only_where_all_its_keys_are_set_again() -> None:
    def left(*messages: Wire) -> list[Wire]:
        thread = Thread()
        thread.run(BEGIN, UPDATE, *messages)
        return [dict(message) for message in thread.middleware.registry.messages_for("t", "s")][2:]

    a, ab = v08_data("/f", "a"), v08_data("/f", "a", "b", value="y")
    assert left(a, ab) == [ab]
    assert left(ab, a) == [ab, a]
    assert left(a, v08_data("/f", "b"), a) == [v08_data("/f", "b"), a]
    assert left(v08_data("/f/a", "x"), ab) == [ab]
    assert left(v08_data("/f/c", "x"), ab) == [v08_data("/f/c", "x"), ab]
    assert left(a, v08_data(None, "z")) == [v08_data(None, "z")]


def test_a_v08_snapshot_begins_with_the_one_before_it_and_goes_on_across_runs() -> None:
    # The official React renderer applies what was appended; any other list builds the surface anew, and what the
    # user typed is gone.
    thread = Thread()
    snapshots = [shown(snapshot) for snapshot in thread.run(DATA, UPDATE, BEGIN)]
    for value in ("84", "84 again", "96"):
        snapshots += [shown(snapshot) for snapshot in thread.run(v08_data("/result", "value", value=value), id=value)]
    assert snapshots[-1] == [
        BEGIN,
        UPDATE,
        DATA,
        *(v08_data("/result", "value", value=v) for v in ("84", "84 again", "96")),
    ]
    for before, after in pairwise(snapshots):
        assert after[: len(before)] == before


def test_a_v08_snapshot_is_folded_where_components_change_or_it_grows_too_long() -> None:
    thread = Thread(limits=A2UILimits(max_surface_messages=10_000))
    thread.run(UPDATE, BEGIN, v08_data("/f", "a", value="1"), v08_data("/f", "a", value="2"))
    other = {"surfaceUpdate": {**UPDATE["surfaceUpdate"], "components": [{"id": "new", "component": {"Divider": {}}}]}}
    folded = shown(thread.run(other)[-1])
    assert folded[0] == BEGIN
    assert len(folded[1]["surfaceUpdate"]["components"]) == len(UPDATE["surfaceUpdate"]["components"]) + 1
    assert folded[2:] == [v08_data("/f", "a", value="2")]  # all that is known of the data, whichever run set it

    sizes = [len(shown(snapshot)) for snapshot in thread.run(*(v08_data("/f", "a", value=str(n)) for n in range(600)))]
    assert max(sizes) == MAX_OPERATIONS
    assert sizes.count(3) == 2  # folded twice: create, components, the data that counts


def test_and_where_it_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The TypeScript client gives up at 10 MB of one event."""
    monkeypatch.setattr(_surface, "MAX_SURFACE_SIZE", 10_000)
    thread = Thread()
    thread.run(UPDATE, BEGIN)
    snapshots = thread.run(*(v08_data("/f", "a", value=str(n) * 500) for n in range(100)))
    assert max(len(json.dumps(snapshot)) for snapshot in snapshots) < 12_500
    assert max(len(shown(snapshot)) for snapshot in snapshots) > 5


def test_v10_may_create_a_surface_whole() -> None:
    whole = create(version="v1.0", components=[{"id": "root", "component": "Text"}], dataModel={"a": 1})
    root = {
        "version": "v1.0",
        "updateComponents": {"surfaceId": "s", "components": [{"id": "root", "component": "Text"}]},
    }
    model = data({"a": 1}, "/", version="v1.0")
    thread = Thread()
    assert thread.run(whole) == [activity("a2ui-surface-m", create(version="v1.0"), root, model)]
    # The next run does not repeat the data, though the creation brought it along.
    assert thread.run(data(2, "/b", version="v1.0")) == [
        activity("a2ui-surface-m", create(version="v1.0"), root, data(2, "/b", version="v1.0"))
    ]


def test_a_deleted_surface_is_deleted_in_the_version_that_created_it() -> None:
    assert Thread().run(create(), components(), DELETE)[-1] == activity("a2ui-surface-m", delete())
    assert Thread().run(BEGIN, UPDATE, DELETE)[-1] == activity("a2ui-surface-m", DELETE)


def test_a_surface_that_was_never_shown_need_not_be_deleted() -> None:
    thread = Thread()
    assert thread.run(create(), delete()) == []
    assert thread.codes == []


def test_deleting_what_nobody_knows_is_reported() -> None:
    result = one(delete())
    assert result.codes == ["a2ui.surface-unknown"]
    assert result.detail("a2ui.surface-unknown") == {"surface_id": "s", "kind": "deleteSurface"}


@pytest.mark.parametrize(
    ("messages", "lacks"),
    [
        ([create(), data(1)], "components"),
        ([BEGIN, DATA], "components"),
        ([UPDATE], "a createSurface or beginRendering"),
    ],
)
def test_what_could_not_be_shown_is_reported_at_the_end_of_the_run(messages: list[Wire], lacks: str) -> None:
    result = one(*messages)
    assert result.events == run_of()
    assert result.codes == ["a2ui.surface-incomplete"]
    assert result.detail("a2ui.surface-incomplete") == {"surface_id": "s", "lacks": lacks}


def test_an_update_before_its_create_is_reported_at_once_and_once() -> None:
    """From v0.9 on the renderers take none; in v0.8 components and data may come first."""
    result = one(components(), data(1), data(2))
    assert result.events == run_of()
    assert result.codes == ["a2ui.surface-unknown"]
    assert result.detail("a2ui.surface-unknown") == {"surface_id": "s", "kind": "updateComponents"}


def test_the_next_run_may_complete_it() -> None:
    thread = Thread()
    assert thread.run(create(), id="m1") == []
    assert thread.run(components(), id="m2") == [activity("a2ui-surface-m1", create(), components())]


def test_what_is_about_no_surface_travels_as_raw() -> None:
    call = {"version": "v1.0", "callRendererFunction": {"functionCallId": "f", "callFunction": {}, "surfaceId": "s"}}
    result = one(call)
    assert result.events == run_of(raw(call, "a2ui/v1.0"))
    assert result.codes == ["a2ui.no-surface"]


def test_another_generation_cannot_be_mixed_in() -> None:
    thread = Thread()
    assert thread.run(create(), components(), UPDATE, data(1)) == [
        activity("a2ui-surface-m", create(), components()),
        activity("a2ui-surface-m", create(), components(), data(1)),
    ]
    assert thread.codes == ["a2ui.version-mix"]
    # But a surface may be created anew in another.
    assert thread.run(BEGIN, UPDATE) == [activity("a2ui-surface-m", BEGIN, UPDATE)]


# Across runs


def test_the_next_run_repeats_components_but_no_data() -> None:
    """A renderer applies a snapshot on top of what it shows: what the user has typed since would be reset."""
    thread = Thread()
    thread.run(create(), components(), data({"a": ""}), id="m1")
    assert thread.run(data(84, "/result"), id="m2") == [
        activity("a2ui-surface-m1", create(), components(), data(84, "/result"))
    ]


def test_what_a_run_repeats_of_an_earlier_one_is_shown_once() -> None:
    """For a client that has come back without its history."""
    thread = Thread()
    thread.run(BEGIN, UPDATE)
    assert thread.run(UPDATE, BEGIN) == [activity("a2ui-surface-m", BEGIN, UPDATE)]


def test_data_set_to_what_it_was_is_sent_again_in_another_run() -> None:
    """The user may have changed it."""
    thread = Thread()
    thread.run(create(), components(), data(1))
    assert thread.run(data(1)) == [activity("a2ui-surface-m", create(), components(), data(1))]


def test_threads_do_not_see_each_other() -> None:
    thread = Thread()
    thread.run(create(), components(), thread_id="t1")
    assert thread.run(data(1), thread_id="t2") == []
    assert thread.run(data(1), thread_id="t1") != []


def test_the_registrys_key_says_what_a_thread_is() -> None:
    registry = SurfaceRegistry(key=lambda run: run.thread_id[0])
    thread = Thread(registry=registry)
    thread.run(create(), components(), thread_id="t1")
    assert thread.run(data(1), thread_id="t2") != []
    assert thread.run(data(1), thread_id="u") == []
    assert registry.messages_for("t", "s") == (create(), components(), data(1))


def test_a_shared_registry_keeps_the_id_across_middleware() -> None:
    registry = SurfaceRegistry()
    Thread(registry=registry).run(create(), components(), id="m1")
    (snapshot,) = Thread(registry=registry).run(data(1), id="m2")
    assert snapshot["messageId"] == "a2ui-surface-m1"
    (fresh,) = Thread().run(create(), components(), id="m2")
    assert fresh["messageId"] == "a2ui-surface-m2"


def test_a_deleted_surface_is_forgotten() -> None:
    thread = Thread()
    thread.run(create(), components(), delete(), id="m1")
    assert thread.run(data(1), id="m2") == []
    (snapshot,) = thread.run(create(), components(), id="m3")
    assert snapshot["messageId"] == "a2ui-surface-m3"


def test_two_runs_of_a_stream_are_two_runs() -> None:
    first, second = message(lines(create(), components(), data(1))), message(lines(data(2, "/b")), id="m2")
    events = translate([*run_of(*first), *run_of(*second)], carrier="activity").events
    assert events[-2] == activity("a2ui-surface-m", create(), components(), data(2, "/b"))


# Ids


def ids(snapshots: list[Wire]) -> list[str]:
    return [snapshot["messageId"] for snapshot in snapshots]


def test_further_surfaces_of_a_message_append_their_own_id() -> None:
    both = [create("a"), components(surface="a"), create("b"), components(surface="b"), data(1, surface="a")]
    assert ids(Thread().run(*both)) == ["a2ui-surface-m", "a2ui-surface-m-b", "a2ui-surface-m"]


def test_even_if_the_first_is_gone() -> None:
    gone = [create("a"), components(surface="a"), delete("a"), create("b"), components(surface="b")]
    assert ids(Thread().run(*gone)) == ["a2ui-surface-m", "a2ui-surface-m", "a2ui-surface-m-b"]


def test_a_message_id_that_comes_again_in_another_run_is_another_message() -> None:
    first = message(lines(create("a"), components(surface="a"), delete("a")))
    second = message(lines(create("b"), components(surface="b")))
    events = translate([*run_of(*first), *run_of(*second)], carrier="activity").events
    assert ids([event for event in events if "messageId" in event]) == ["a2ui-surface-m"] * 3


def test_the_message_that_created_it_counts_not_the_one_that_completed_it() -> None:
    events = run_of(*message(lines(create()), id="m1"), *message(lines(components()), id="m2"))
    assert ids(translate(events, carrier="activity").events[1:-1]) == ["a2ui-surface-m1"]


def test_no_two_surfaces_share_an_activity() -> None:
    thread = Thread()
    thread.run(create("x"), components(surface="x"), create("y"), components(surface="y"), id="m")
    assert ids(thread.run(create("z"), components(surface="z"), id="m-y")) == ["a2ui-surface-m-y-z"]


def test_a_message_without_an_id_lends_the_surfaces() -> None:
    events = run_of(chunk(lines(create("x"), components(surface="x"))))
    assert ids(translate(events, carrier="activity").events[1:-1]) == ["a2ui-surface-x"]


# Surfaces that exist


def test_a_surface_created_again_starts_anew_under_its_id() -> None:
    thread = Thread()
    thread.run(create(), components("root", "old"), data(1), id="m1")
    assert thread.run(create(theme={}), components(), id="m2") == [
        activity("a2ui-surface-m1", create(theme={}), components())
    ]
    assert thread.codes == ["a2ui.surface-reused"]


def test_or_is_deleted_first() -> None:
    thread = Thread(reused="recreate")
    thread.run(create(), components("root", "old"), id="m1")
    assert thread.run(create(), components(), id="m2") == [
        activity("a2ui-surface-m1", delete()),
        activity("a2ui-surface-m2", create(), components()),
    ]


def test_or_stays_as_it_is() -> None:
    thread = Thread(reused="drop")
    thread.run(create(), components("root", "old"), id="m1")
    assert thread.run(create(theme={}), components(), id="m2") == [
        activity("a2ui-surface-m1", create(), components("root", "old"))
    ]


def test_a_second_begin_rendering_is_no_creation() -> None:
    thread = Thread(reused="drop")
    other = {"beginRendering": {"surfaceId": "s", "root": "other"}}
    assert thread.run(BEGIN, UPDATE, other)[-1] == activity("a2ui-surface-m", other, UPDATE)
    assert thread.codes == []


# Any messages

surfaces = st.sampled_from(["s", "t"])
anything = st.one_of(
    st.builds(create, surfaces, theme=st.integers(0, 1)),
    st.builds(
        lambda ids, surface: components(*ids, surface=surface), st.lists(st.sampled_from("abc"), min_size=1), surfaces
    ),
    st.builds(data, st.integers(0, 1), st.sampled_from(["/a", "/a/b", "/c", "/"]), surfaces),
    st.builds(delete, surfaces),
)


class Renderer:
    """What a v0.9 renderer shows: by surface, its theme and components. (Data is the user's too, once it is shown.)"""

    def __init__(self) -> None:
        self.surfaces: dict[str, tuple[Any, dict[str, Any]]] = {}

    def apply(self, messages: list[Wire]) -> None:
        for sent in messages:
            ((kind, body),) = ((key, value) for key, value in sent.items() if key != "version")
            surface = self.surfaces.get(body["surfaceId"])
            if kind == "createSurface":
                self.surfaces[body["surfaceId"]] = (body["theme"], {})
            elif kind == "deleteSurface":
                self.surfaces.pop(body["surfaceId"], None)
            elif kind == "updateComponents" and surface is not None:
                surface[1].update({component["id"]: component for component in body["components"]})

    def visible(self) -> dict[str, Any]:
        return {id_: surface for id_, surface in self.surfaces.items() if surface[1]}


@given(runs=st.lists(st.lists(anything, max_size=8), min_size=1, max_size=3))
def test_a_renderer_of_snapshots_shows_what_one_of_the_messages_does(runs: list[list[Wire]]) -> None:
    thread = Thread(reused="recreate")
    of_snapshots, of_messages = Renderer(), Renderer()
    for at, messages in enumerate(runs):
        of_messages.apply(messages)
        for snapshot in thread.run(*messages, id=f"m{at}"):
            operations = shown(snapshot)
            kinds = [next(key for key in operation if key != "version") for operation in operations]
            assert kinds == ["deleteSurface"] or kinds[:2] == ["createSurface", "updateComponents"]
            of_snapshots.apply(operations)
        assert of_snapshots.visible() == of_messages.visible()


def test_the_catalog_goes_through_as_it_is() -> None:
    assert shown(Thread().run(create(), components())[0])[0]["createSurface"]["catalogId"] == CATALOG
