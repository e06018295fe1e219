"""The native thread pool: each chunk exactly once, whatever else happens."""

import ctypes
import os
import textwrap
import threading

import numpy as np
import pytest
from python_process import printed
from together import together

from numjet.base import config
from numjet.cpu.builder import sources
from numjet.cpu.link import link
from numjet.cpu.runtime import blas, compile_ahead, programs, threads

# add_one adds 1 to ctx[begin:end]; nested runs an inner job for each of its own elements;
# many calls nj_parallel_for(add_one) `times` times without going back to Python.
MODULE = """
declare void @nj_parallel_for(ptr, ptr, i64, i64)

define void @add_one(ptr %ctx, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %ctx, i64 %i
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %out
out:
  ret void
}

define void @nested(ptr %ctx, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, 50
  %p = getelementptr i64, ptr %ctx, i64 %offset
  call void @nj_parallel_for(ptr @add_one, ptr %p, i64 50, i64 7)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %out
out:
  ret void
}

define void @record(ptr %ctx, i64 %begin, i64 %end) {
  %p = getelementptr i64, ptr %ctx, i64 %begin
  store i64 %end, ptr %p
  ret void
}

define void @many(ptr %fn, ptr %ctx, i64 %n, i64 %grain, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @nj_parallel_for(ptr %fn, ptr %ctx, i64 %n, i64 %grain)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""

# take_all counts up the numbers it takes of a word until none is left, a thread a chunk.
TAKE = """
declare i64 @nj_pool_take(ptr, i64, i64, i64, ptr)

define void @take_all(ptr %ctx, i64 %begin, i64 %end) {
entry:
  %first = alloca i64
  %counts = getelementptr i64, ptr %ctx, i64 1
  br label %next
next:
  %count = call i64 @nj_pool_take(ptr %ctx, i64 2, i64 8, i64 %begin, ptr %first)
  %some = icmp ne i64 %count, 0
  br i1 %some, label %add, label %out
add:
  %from = load i64, ptr %first
  %to = add i64 %from, %count
  br label %loop
loop:
  %i = phi i64 [ %from, %add ], [ %after, %loop ]
  %p = getelementptr i64, ptr %counts, i64 %i
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, %to
  br i1 %more, label %loop, label %next
out:
  ret void
}
"""

TOGETHER = """
declare i32 @nj_pool_together(ptr, ptr, i64)

; Each job counts itself in and waits until `end` of them (kept in ctx[1]) are in.
define void @barrier(ptr %ctx, i64 %begin, i64 %end) {
entry:
  %before = atomicrmw add ptr %ctx, i64 1 seq_cst, align 8
  %p = getelementptr i64, ptr %ctx, i64 1
  %all = load i64, ptr %p
  br label %loop
loop:
  %in = load atomic i64, ptr %ctx seq_cst, align 8
  %more = icmp slt i64 %in, %all
  br i1 %more, label %loop, label %out
out:
  ret void
}

define i32 @meet(ptr %ctx, i64 %count) {
  %ran = call i32 @nj_pool_together(ptr @barrier, ptr %ctx, i64 %count)
  ret i32 %ran
}
"""

i64, ptr = ctypes.c_int64, ctypes.c_void_p


@pytest.fixture(scope="module")
def library():
    return link.load([link.compile_module(MODULE, verify=True)])


@pytest.fixture(autouse=True)
def four_threads():
    threads.set_num_threads(4)
    yield
    threads.set_num_threads(0)


@pytest.fixture(scope="module")
def many(library):
    function = ctypes.CFUNCTYPE(None, ptr, ptr, i64, i64, i64)(library.address("many"))

    def run(name, array, n, grain, times=1):
        function(library.address(name), array.ctypes.data, n, grain, times)

    return run


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 3, 63, 64, 65, 1000])
@pytest.mark.parametrize("grain", [-1, 0, 1, 7, 64, 5000])
def test_every_element_once(many, n, grain):
    array = np.zeros(1100, np.int64)
    many("add_one", array, n, grain, 20)
    assert (array[: max(n, 0)] == 20).all() and (array[max(n, 0) :] == 0).all()


@pytest.mark.parametrize("count", [1, 4])
def test_chunks_do_not_depend_on_threads(many, count):
    threads.set_num_threads(count)
    array = np.zeros(1000, np.int64)
    many("record", array, 1000, 7)
    expected = np.zeros(1000, np.int64)
    expected[::7] = np.minimum(np.arange(0, 1000, 7) + 7, 1000)
    assert (array == expected).all()


def test_more_chunks_than_one_word_counts(many):
    array = np.zeros(3_000_001, np.int64)
    many("add_one", array, 3_000_001, 1, 2)
    assert (array == 2).all()


def test_many_jobs_in_a_row(many):
    array = np.zeros(300, np.int64)
    many("add_one", array, 300, 11, 20_000)
    assert (array == 20_000).all()


def test_jobs_after_sleep(many):
    array = np.zeros(300, np.int64)
    for _ in range(30):
        threading.Event().wait(0.002)  # long enough for the workers to sleep
        many("add_one", array, 300, 11)
    assert (array == 30).all()


def test_nested_jobs_run_serially(many):
    array = np.zeros(5000, np.int64)
    many("nested", array, 100, 3, 20)
    assert (array == 20).all()


def test_concurrent_callers(many):
    arrays = [np.zeros(400, np.int64) for _ in range(4)]
    together(lambda array: many("add_one", array, 400, 9, 3000), arrays)
    assert all((array == 3000).all() for array in arrays)


def test_number_of_threads_changes_between_jobs(many):
    array = np.zeros(500, np.int64)
    for i, count in enumerate((2, 7, 1, 3, 1, 5), start=1):
        threads.set_num_threads(count)
        assert threads.num_threads() == count
        many("add_one", array, 500, 3, 100)
        assert threads.workers() == count - 1
        assert (array == 100 * i).all()


def test_flag_sets_the_number_of_threads(many):
    config.num_threads.set(3)
    many("add_one", np.zeros(100, np.int64), 100, 1)
    assert threads.workers() == 2
    with pytest.raises(ValueError, match="at least 0"):
        threads.set_num_threads(-1)


def test_resizing_while_another_thread_works(many):
    array = np.zeros(400, np.int64)
    caller = threading.Thread(target=many, args=("add_one", array, 400, 9, 20_000))
    caller.start()
    for count in (2, 5, 1, 3) * 5:
        threads.set_num_threads(count)
    caller.join()
    assert (array == 20_000).all()


def test_jobs_that_wait_for_one_another():
    library = link.load([link.compile_module(TOGETHER, verify=True)])
    meet = ctypes.CFUNCTYPE(ctypes.c_int32, ptr, i64)(library.address("meet"))
    for count in (1, 2, 3, 4) * 20:
        state = np.array([0, count], np.int64)
        assert meet(state.ctypes.data, count) == 1
        assert state[0] == count
    state = np.array([0, 5], np.int64)
    assert meet(state.ctypes.data, 5) == 0
    assert state[0] == 0


def run_child(code, **environment):
    return printed(f"MODULE = '''{MODULE}'''\n" + textwrap.dedent(code), **environment)


_SETUP = """
    import ctypes, os, numpy as np
    from numjet.cpu.link import link
    from numjet.cpu.runtime import threads
    library = link.load([link.compile_module(MODULE)])
    i64, ptr = ctypes.c_int64, ctypes.c_void_p
    many = ctypes.CFUNCTYPE(None, ptr, ptr, i64, i64, i64)(library.address("many"))
    def check(times):
        array = np.zeros(300, np.int64)
        many(library.address("add_one"), array.ctypes.data, 300, 7, times)
        assert (array == times).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_gets_a_pool_of_its_own():
    output = run_child(_SETUP + """
    check(100)
    assert threads.workers() == 2
    for _ in range(5):
        child = os.fork()
        if child == 0:
            assert threads.workers() == 0
            check(100)
            assert threads.workers() == 2
            os._exit(7)
        check(100)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print("ok")
    """, NUMJET_NUM_THREADS="3")
    assert output == "ok\n"


def test_environment_sets_the_number_of_threads():
    output = run_child(_SETUP + """
    check(10)
    print(threads.num_threads(), threads.workers())
    """, NUMJET_NUM_THREADS="1")
    assert output == "1 0\n"


def test_process_ends_while_workers_spin():
    output = run_child(_SETUP + """
    check(1000)
    print("end")
    """, NUMJET_NUM_THREADS="4")
    assert output == "end\n"


def test_without_threads_jobs_run_serially():
    output = run_child("""
    from numjet.cpu import host
    host.has_threads = lambda: False
    """ + _SETUP + """
    check(100)
    threads.set_num_threads(4)
    check(100)
    print(threads.workers())
    """)
    assert output == "0\n"


@pytest.mark.skipif(sources.CHECKED, reason="a checked build is kept nowhere")
def test_what_is_compiled_ahead_is_what_is_loaded(monkeypatch):
    for work in compile_ahead():
        work()
    # LLVM is not asked again.
    monkeypatch.setattr(link, "_compile", None)
    pool = threads._Pool()
    assert pool.workers is None or pool.workers() == 0
    assert programs._library_once.__wrapped__().address("program_run")
    if threads.num_threads() > 1:
        blas.adopt_numpy.__wrapped__()


def take(word: int, least: int, share: int, back: int) -> tuple[int, int, int]:
    """(how many were taken, the first of them, the word then)."""
    call = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p
    )(threads.take_address())
    words = np.array([word, -1])
    count = call(words.ctypes.data, least, share, back, words.ctypes.data + 8)
    return count, int(words[1]), int(words[0])


def test_numbers_are_taken_from_both_ends() -> None:
    word = 100 << 32
    count, first, word = take(word, 1, 4, 0)
    assert (count, first, word) == (25, 0, 100 << 32 | 25)
    count, first, word = take(word, 1, 5, 1)
    assert (count, first, word) == (15, 85, 85 << 32 | 25)
    assert take(word, 70, 5, 0)[:2] == (60, 25)
    assert take(word, 70, 5, 1)[:2] == (60, 25)
    assert take(85 << 32 | 85, 1, 1, 0) == (0, -1, 85 << 32 | 85)


def test_threads_take_each_number_once() -> None:
    library = link.library(TAKE)
    call = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )(threads.parallel_for_address())
    for n in (1, 2, 7, 1000, 100_000):
        words = np.zeros(n + 1, np.int64)
        for round in range(20):
            words[0] = n << 32
            call(library.address("take_all"), words.ctypes.data, 4, 1)
            assert np.all(words[1:] == round + 1)
