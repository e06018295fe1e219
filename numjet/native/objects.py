"""How objects of the interpreter, of NumPy and of this package lie in memory, field by field.

Declared once here; `layout` tries every field before native code reads one. Fields of classes with
slots are found by planting an object (`found`). What would break it: a field that is read without
being declared here.
"""

from __future__ import annotations

import numpy as np

from numjet.cpu.builder.records import (
    NULL,
    Array,
    Double,
    Inline,
    Int,
    Int8,
    Int32,
    Pointer,
    Record,
    native,
)


class Object(Record):
    """Any object."""

    refcount: Int
    type: Object


@native
def is_a(x: Object, cls: Object) -> bool:
    """Whether an object (or NULL) is of exactly this type."""
    return x != NULL and x.type == cls


class Sized(Object):
    """An object with a number of items."""

    size: Int


class Tuple(Sized):
    """A tuple, also of a named kind."""

    python = tuple
    sized = {"items": "size"}
    found = {"items": tuple.__basicsize__}
    items: Inline[Object]


class Bytes(Sized):
    """Bytes, and a zero behind them."""

    python = bytes
    sized = {"text": "size"}
    found = {"text": bytes.__basicsize__ - 1}
    text: Inline[Int8]


class List(Sized):
    """A list."""

    python = list
    sized = {"items": "size"}
    items: Array[Object]


class Dict(Object):
    """A dict."""

    python = dict
    used: Int


class Float(Object):
    """A float."""

    python = float
    value: Double


class NdArray(Object):
    """NumPy's array."""

    python = np.ndarray
    sized = {"dims": "rank", "strides": "rank"}
    data: Pointer
    rank: Int32
    dims: Array[Int]
    strides: Array[Int]
    base: Object
    dtype: Object
    flags: Int32


# Flags of NumPy's arrays.
DENSE = 0x101  # C order and aligned
WRITEABLE = 0x400
OWNS_DATA = 0x4


class ShapedArray(Object):
    """An aval."""

    found = {}
    shape: Object
    _tangent: Object


class ArrayImpl(Object):
    """A concrete array; `_value` is NULL when it was deleted. Anybody may have filled the slots."""

    found = {}
    _aval: Object
    _value: Object


class RemoteArray(Object):
    """An array on devices of another backend; `_buffer` is NULL when it was deleted."""

    found = {}
    _aval: Object
    _sharding: Object
    _buffer: Object


class Held(Object):
    """What an array on devices holds there (`core.remote.Held`); `handles` may not be there yet."""

    found = {}
    handles: Tuple
    devices: Object
    source: Object
    maker: Object


class AtHelper(Object):
    """`x.at` of a concrete array."""

    found = {}
    array: Object


class AtRef(Object):
    """`x.at[index]` of a concrete array."""

    found = {}
    array: Object
    index: Object


# ------------------------------------------------------------------ what tracing makes


class Code(Object):
    """A code object."""

    found = {}
    co_filename: Object


class StageTrace(Object):
    """A trace that writes equations down."""

    found = {}
    done: Object
    source: Object
    eqns: Object


class StageTracer(Object):
    """A staged array."""

    found = {}
    owner: Object
    jaxpr_var: Object
    aval: Object
    source: Object


class Var(Object):
    """A variable of a jaxpr."""

    found = {}
    aval: Object


class Literal(Object):
    """A constant of a jaxpr."""

    found = {}
    value: Object
    aval: Object


class PartialTracer(Object):
    """An unknown value of partial evaluation (`transforms.linearize`)."""

    found = {}
    owner: Object
    jaxpr_var: Object
    aval: Object


class JVPTracer(Object):
    """A primal with its tangent (`transforms.jvp`)."""

    found = {}
    owner: Object
    primal: Object
    tangent: Object
    aval: Object


class ReplayTrace(Object):
    """A trace that writes down again what rules wrote (`transforms.replay`)."""

    found = {}
    patterns: Object
    long: Object
    partial: Object
    stage: Object
    tape: Object


class Pattern(Object):
    """What a rule wrote (`transforms.replay`)."""

    found = {}
    constants: Object
    known: Object
    linear: Object
    outs: Object


class Eqn(Object):
    """An equation."""

    found = {}
    invars: Object
    outvars: Object
    primitive: Object
    params: Object
    effects: Object
    source: Object


class Primitive(Object):
    """A primitive."""

    found = {}
    multiple_results: Object
    effects: Object
    higher_order: Object
    collective: Object


# ------------------------------------------------------------------ what runs later


class Tape(Object):
    """The record of operations that were written down (`core.deferred.Record`)."""

    found = {}
    rows: Object
    inputs: Object
    avals: Object
    places: Object
    bytes: Object
    limit: Object
    taken: Object
    lock: Object


class Open(Object):
    """What a thread has open (`core.deferred.Open`)."""

    found = {}
    tape: Object
    busy: Object
    lock: Object


class Place(Object):
    """Where in a record an array is made."""

    found = {}
    record: Object
    code: Object


class DeferredArray(Object):
    """An Array whose value is made when it is read; its type changes then."""

    found = {}
    _aval: Object
    _pending: Object


class Plan(Object):
    """Operations that are written down together; `entry` is an array of `tables.Written`."""

    found = {}
    entry: Object


class LinearTracer(Object):
    """A linearized concrete value (`transforms.eager`)."""

    found = {}
    owner: Object
    primal: Object
    tangent: Object
    aval: Object


class Rule(Object):
    """How a primitive is linearized (`transforms.linear_steps`)."""

    found = {}
    forward: Object
    aval: Object
    alias: Object
    plan: Object
    constants: Object
    gives: Object


class LinearStep(Object):
    """A rule in a record."""

    found = {}
    rule: Object
    residuals: Object
    invars: Object
    outvars: Object


class Form(Object):
    """What of a row does not depend on the operands (`core.deferred.FormRecord`)."""

    found = {}
    number: Object
    begins: Object
