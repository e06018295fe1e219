"""Recordings of the profiler, the files they leave, and what monitoring hears of compiling."""

import gzip
import json
import threading
import warnings

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import monitoring, profiler
from numjet.api import recording, xspace
from numjet.base import protobuf

X = np.linspace(-1, 1, 300 * 300, dtype=np.float32).reshape(300, 300)


def own_function(f, x):
    return f(x)


def recorded(folder, work, **options):
    """What `work()` gives, and the events while it ran: (name, kind, start, end) by thread."""
    with profiler.trace(folder, **options):
        out = work()
    (file,) = folder.rglob("*.xplane.pb")
    (plane,) = profiler.ProfileData.from_file(str(file)).planes
    assert plane.name == "/host:CPU"
    lines = {line.name: [(e.name, dict(e.stats)["kind"], e.start_ns, e.end_ns)
                         for e in line.events] for line in plane.lines}
    return out, lines


def test_what_a_recording_holds(tmp_path):
    f = nj.jit(lambda x: jnp.exp(x @ x).sum(0) @ x)
    plain = f(X)
    g = nj.jit(lambda x: x * 3 + 1)

    def work():
        with profiler.TraceAnnotation("block", batch=7):
            y = own_function(f, X)
        g(np.ones(3, np.float32))
        thread = threading.Thread(target=f, args=(X,), name="second")
        thread.start()
        thread.join()
        return y, float((jnp.asarray(X) * 3 + 2).sum())

    (y, total), lines = recorded(tmp_path, work)
    assert np.array_equal(y, plain)
    assert total == pytest.approx(float((X * 3 + 2).sum()), rel=1e-5)
    events = lines["MainThread"]
    by_name = {name: (kind, start, end) for name, kind, start, end in events}
    kinds = {kind for _, kind, *_ in events}
    assert kinds >= {"program", "step", "trace", "compile", "eager", "annotation", "python"}
    # One within the other: the annotation, the function, the program, its kernels.
    (own,) = [name for name in by_name if name.endswith(" own_function")]
    inner = [(s, e) for name, kind, s, e in events if kind == "step"]
    chain = [by_name["block"][1:], by_name[own][1:], by_name["jit(<lambda>)"][1:]]
    first = next((s, e) for n, k, s, e in events if n == "jit(<lambda>)" and k == "program")
    chain[-1] = first
    for (start, end), (s, e) in zip(chain, chain[1:], strict=False):
        assert start <= s <= e <= end
    assert len([1 for s, e in inner if first[0] <= s <= e <= first[1]]) >= 2
    assert any(kind == "program" for _, kind, *_ in lines["second"])
    assert not profiler.TraceAnnotation.is_enabled()
    assert np.array_equal(f(X), plain)


def test_steps_by_step_are_the_program(tmp_path):
    """Loops of steps, calls of Python, donation and control flow give the same while recorded."""
    def many(x):
        y = nj.pure_callback(lambda v: np.asarray(v) * 2, nj.ShapeDtypeStruct(x.shape, x.dtype), x)
        y = nj.lax.fori_loop(0, 3, lambda i, v: jnp.linalg.inv(v + 5 * jnp.eye(len(v))) @ x, y)
        return nj.lax.cond(y.sum() > 0, lambda v: v, lambda v: -v, y), jnp.sort(x.ravel())

    small = X[:40, :40].copy()
    f, h = nj.jit(many), nj.jit(lambda x: x.at[3].add(1), donate_argnums=0)
    plain = f(small), h(jnp.array(small))
    again, _ = recorded(tmp_path, lambda: (f(small), h(jnp.array(small))))
    for a, b in zip(nj.tree.leaves(plain), nj.tree.leaves(again), strict=True):
        assert np.array_equal(a, b)


def test_a_function_that_raises_ends_the_recording(tmp_path):
    def wrong(x):
        raise ValueError("mine")

    f = nj.jit(lambda x: nj.pure_callback(wrong, nj.ShapeDtypeStruct((), np.float32), x))
    with pytest.raises(nj.errors.JaxRuntimeError, match="mine"):
        recorded(tmp_path, lambda: f(1.0).block_until_ready())
    assert recording.Recording.current is None and not profiler.TraceAnnotation.is_enabled()


def test_one_at_a_time(tmp_path):
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="Only one profile may be run at a time"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    with pytest.raises(TypeError):
        profiler.start_trace(None)
    assert recording.Recording.current is None


def test_python_functions_can_be_left_out(tmp_path):
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    _, lines = recorded(tmp_path, lambda: own_function(nj.jit(jnp.sin), X),
                        profiler_options=options)
    assert "python" not in {kind for events in lines.values() for _, kind, *_ in events}


def test_more_than_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MOST_SPANS", 3)
    with pytest.warns(RuntimeWarning, match="holds 3 spans; 2 that came later"):  # noqa: SIM117
        with profiler.trace(tmp_path, profiler_options=quiet()):
            for _ in range(5):
                with profiler.StepTraceAnnotation("train", step_num=1):
                    pass


def quiet():
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    return options


def test_for_browsers(tmp_path):
    with profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=quiet()):
        for step in range(3):
            with profiler.StepTraceAnnotation("train", step_num=step):
                profiler.annotate_function(lambda: None, name="inner", size=2)()
    (file,) = tmp_path.rglob("perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    shown = [(e["name"], e["args"]) for e in events if e["ph"] == "X"]
    assert shown == [pair for k in range(3)
                     for pair in (("train", {"step_num": k}), ("inner", {"size": 2}))]


def test_a_link_is_served_until_it_was_fetched(tmp_path, capsys, monkeypatch):
    import socket
    import urllib.request

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(recording, "_PORT", port)
    (tmp_path / "x.gz").write_bytes(b"12345")
    server = threading.Thread(target=recording.offer, args=(tmp_path / "x.gz",), daemon=True)
    server.start()
    for _ in range(100):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/x.gz", timeout=10) as answer:
                assert answer.read() == b"12345"
                assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
            break
        except ConnectionError:
            server.join(0.05)
        except urllib.error.URLError:
            server.join(0.05)
    server.join(10)
    assert not server.is_alive()
    assert "https://ui.perfetto.dev/#!/?url=http://127.0.0.1" in capsys.readouterr().out


def test_jax_reads_our_files():
    events = [xspace.Event("a", 10.0, 5.0, {"k": 3, "s": "text", "f": 1.5, "n": -4}),
              xspace.Event("b", 20.0, 0.0, {})]
    planes = [xspace.Plane("/host:CPU", [xspace.Line("main", events), xspace.Line("t", [])], {}),
              xspace.Plane("other", [], {"cores": 2})]
    data = xspace.write(planes)
    assert xspace.read(data) == planes
    found = run_in_oracle("""
planes = list(jax.profiler.ProfileData.from_serialized_xspace(data.tobytes()).planes)
lines = [list(p.lines) for p in planes]
events = [(e.name, e.start_ns, e.duration_ns, e.end_ns, sorted(dict(e.stats).items()))
          for e in lines[0][0].events]
out["all"] = repr(([p.name for p in planes], [l.name for l in lines[0]], events,
                   dict(planes[1].stats)))
""", data=np.frombuffer(data, np.uint8))
    assert str(found["all"]) == repr((
        ["/host:CPU", "other"], ["main", "t"],
        [("a", 10.0, 5.0, 15.0, [("f", 1.5), ("k", 3), ("n", -4), ("s", "text")]),
         ("b", 20.0, 0.0, 20.0, [])],
        {"cores": 2},
    ))  # fmt: skip


def test_damaged_files():
    whole = xspace.write([xspace.Plane("p", [xspace.Line("l", [xspace.Event("e", 1.0, 2.0,
                                                                           {"a": 1})])], {})])
    rng = np.random.default_rng(0)
    for _ in range(500):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), 2):
            data[at] = rng.integers(256)
        try:
            profiler.ProfileData.from_serialized_xspace(bytes(data[: rng.integers(len(data)) + 1]))
        except RuntimeError as error:
            assert "Failed to parse XSpace" in str(error)  # noqa: PT017
    with pytest.raises(FileNotFoundError):
        profiler.ProfileData.from_file("/nonexistent")
    with pytest.raises(ValueError, match="does not end"):
        list(protobuf.fields(b"\xff" * 12))


def test_monitoring_hears_of_stages():
    heard, spans, scalars = [], [], []
    f = nj.jit(lambda x: x * 2 + 5)
    x = jnp.ones(5)
    listeners = [
        (monitoring.register_event_duration_secs_listener,
         monitoring.unregister_event_duration_listener,
         lambda e, seconds, **k: heard.append((e, k["fun_name"], seconds))),
        (monitoring.register_event_time_span_listener,
         monitoring.unregister_event_time_span_listener,
         lambda e, start, end, **k: spans.append((e, end - start))),
        (monitoring.register_scalar_listener, monitoring.unregister_scalar_listener,
         lambda e, value, **k: scalars.append(e)),
    ]
    for register, _, listener in listeners:
        register(listener)
    try:
        f(x)
        f(x)
        f(jnp.ones(6))
    finally:
        for _, unregister, listener in listeners:
            unregister(listener)
    names = [f"/jax/core/compile/{stage}_duration"
             for stage in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")]
    told = list(zip(names, ("<lambda>", "jit(<lambda>)", "jit(<lambda>)"), strict=True))
    assert [x[:2] for x in heard] == told * 2
    assert [name for name, _ in spans] == names * 2 and scalars == names * 2
    for (*_, seconds), (_, length) in zip(heard, spans, strict=True):
        # Of times since 1970, which have digits down to a quarter of a microsecond; below a minute.
        assert 0 < seconds < 60 and abs(seconds - length) < 1e-6


def test_nothing_is_warned_of(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profiler.trace(tmp_path):
            jnp.sin(jnp.ones(3))


def test_a_server_is_only_noted():
    with pytest.warns(RuntimeWarning, match="nothing listens on port 9999"):
        profiler.start_server(9999)
    with pytest.raises(ValueError, match="Only one profiler server"):
        profiler.start_server(9998)
    profiler.stop_server()
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()


def test_monitoring_hears_of_the_disk_cache():
    heard = []
    listeners = [
        (monitoring.register_event_listener, monitoring.unregister_event_listener,
         lambda event, **k: heard.append(event)),
        (monitoring.register_event_duration_secs_listener,
         monitoring.unregister_event_duration_listener,
         lambda event, seconds, **k: "retrieval" in event and heard.append(event)),
    ]
    f = nj.jit(lambda x: jnp.sin(x) * 3 + 0.17893)
    x = np.ones(5, np.float32)
    for register, _, listener in listeners:
        register(listener)
    try:
        f(x)
        nj.clear_caches()
        f(x)
    finally:
        for _, unregister, listener in listeners:
            unregister(listener)
    where = "/jax/compilation_cache/"
    request = where + "compile_requests_use_cache"
    hit = [request, where + "cache_hits", where + "cache_retrieval_time_sec"]
    heard = [event for event in heard if event != where + "tasks_using_cache"]  # once a process
    assert heard[-3:] == hit
    assert heard[:-3] in ([request, where + "cache_misses"], hit)
