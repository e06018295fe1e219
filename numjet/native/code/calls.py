"""The native call of a compiled signature: one function for all of them, in the notation.

`native.calls` fills the tables it reads and links it. `call` is a METH_FASTCALL | METH_KEYWORDS
method whose `self` is the tuple (table, fallback, ...). Each entry of the table is tried in turn; a
call that fits none goes to the fallback. What would break it: an entry whose objects are not kept
alive by that tuple.

An entry is an argument program of steps over registers that hold borrowed objects, then the
outputs, then a program that builds the result's tree from registers that own theirs.
"""

from __future__ import annotations

from numjet.cpu.builder.records import (
    NULL,
    RELEASE,
    SEQUENTIAL,
    Array,
    Double,
    Int,
    Int8,
    Int32,
    Pointer,
    Single,
    atomic_exchange,
    atomic_store,
    clear,
    copy,
    native,
    place,
    stack,
)
from numjet.native.code.context import at_once, value_of
from numjet.native.objects import (
    DENSE,
    ArrayImpl,
    Float,
    Held,
    List,
    NdArray,
    Object,
    RemoteArray,
    Tuple,
)
from numjet.native.tables import (
    CallContext,
    CallEntry,
    CallTable,
    Node,
    Output,
    RemoteCall,
    Step,
)

# The argument of a vectorcall that may overwrite what lies before its first argument.
WITH_OFFSET = -(1 << 63)


@native
def call(self: Tuple, args: Array[Object], n: Int, names: Tuple) -> Object:
    """A call of the jitted function."""
    held = NdArray(self.items[0])
    table = CallTable(held.data)
    c = table.context
    if c.state[0] == table.state:
        if at_once(c) and value_of(c, c.axes) == c.no_axes:
            status = stack(Int)
            status[0] = 0
            for k in range(table.count):
                out = run(c, table.entries[k], args, n, names, status)
                if status[0] != 0:
                    return out
    return c.PyObject_Vectorcall(self.items[1], args, n, names)


@native
def release(c: CallContext, table: Array[Object], n: Int) -> None:
    """Give up `n` objects, or NULL."""
    for k in range(n):
        c.Py_DecRef(table[k])


@native
def call_with(c: CallContext, function: Object, x: Object) -> Object:
    """function(x)."""
    args = stack(Object, 2)
    args[1] = x
    return c.PyObject_Vectorcall(function, args[1:], 1 | WITH_OFFSET, NULL)


@native
def same_names(e: CallEntry, names: Tuple) -> bool:
    """Whether a call names the arguments that the entry was made for."""
    if names == NULL:
        return e.nkw == 0
    if names.size != e.nkw:
        return False
    for k in range(e.nkw):
        if names.items[k] != e.kwnames[k]:
            return False
    return True


@native
def same_array(x: NdArray, spec: Array[Int]) -> bool:
    """Whether an array has the dtype, the rank and the shape of a table."""
    rank = x.rank
    if x.dtype != Object(spec[0]) or rank != spec[1]:
        return False
    for k in range(rank):
        if x.dims[k] != spec[k + 2]:
            return False
    return True


@native
def give_back(e: CallEntry, arena: Pointer) -> None:
    """Let the next call have the memory that this one took."""
    if arena != NULL:
        atomic_store(place(e, "arena"), arena, RELEASE)


@native
def run(
    c: CallContext, e: CallEntry, args: Array[Object], n: Int, names: Tuple, status: Array[Int]
) -> Object:
    """The call by an entry: its result, or NULL. The status is 0 when the entry does not fit."""
    if n != e.nargs or not same_names(e, names):
        return NULL
    regs = stack(Object, e.regs)
    inputs = stack(Pointer, e.inputs)
    owned = stack(Object, e.owned)
    scalars = stack(Int, e.inputs)
    given = n + e.nkw
    copy(regs, args, given)
    copy(regs[given:], e.preset, e.presets)
    own = 0
    fits = True

    # ---------------------------------------------------------------- arguments
    for i in range(e.steps):
        step = e.step[i]
        x = regs[step.register]
        fits = False
        if x == NULL:  # in a list that is being made
            release(c, owned, own)
            return NULL
        match step.code:
            case Node.ARRAY:
                if x.type == c.array:
                    array = ArrayImpl(x)
                    value = array._value
                    if array._aval == Object(step.a) and value != NULL:
                        if value.type == c.ndarray and NdArray(value).flags & DENSE == DENSE:
                            inputs[step.b] = NdArray(value).data
                            c.Py_IncRef(value)
                            owned[own] = value
                            own += 1
                            fits = True
            case Node.NDARRAY:
                if x.type == c.ndarray:
                    numbers = NdArray(x)
                    if same_array(numbers, Array[Int](step.a)) and numbers.flags & DENSE == DENSE:
                        inputs[step.b] = numbers.data
                        c.Py_IncRef(x)
                        owned[own] = x
                        own += 1
                        fits = True
            case Node.DICT:
                if x.type == c.dict and c.PyDict_Size(x) == step.b:
                    keys = Array[Object](step.a)
                    fits = True
                    for k in range(step.b):
                        item = c.PyDict_GetItemWithError(x, keys[k])
                        if item == NULL:
                            fits = False
                            break
                        regs[step.c + k] = item
            case Node.TUPLE:
                if x.type == Object(step.a) and Tuple(x).size == step.b:
                    copy(regs[step.c:], Tuple(x).items, step.b)
                    fits = True
            case Node.LIST:
                if x.type == c.list and List(x).size == step.b:
                    copy(regs[step.c:], List(x).items, step.b)
                    fits = True
            case Node.STATIC:
                fits = x == Object(step.a)
            case Node.FLOAT:
                if x.type == c.float:
                    inputs[step.b] = scalars[step.b:]
                    number = Float(x).value
                    if step.a == 8:
                        Array[Double](scalars[step.b:])[0] = number
                    else:
                        Array[Single](scalars[step.b:])[0] = Single(number)
                    fits = True
            case Node.INT:
                if x.type == c.int:
                    whole = c.PyLong_AsLongLong(x)
                    inputs[step.b] = scalars[step.b:]
                    if whole == -1 and c.PyErr_Occurred() != NULL:
                        c.PyErr_Clear()
                    elif step.a == 8:
                        scalars[step.b] = whole
                        fits = True
                    else:
                        Array[Int32](scalars[step.b:])[0] = Int32(whole)
                        fits = Int32(whole) == whole
            case Node.BOOL:
                if x == c.true or x == c.false:
                    inputs[step.b] = scalars[step.b:]
                    Array[Int8](scalars[step.b:])[0] = Int(x == c.true)
                    fits = True
            case Node.READER:
                leaves = call_with(c, Object(step.a), x)
                if leaves != NULL:
                    owned[own] = leaves
                    own += 1
                    if leaves.type == c.list and List(leaves).size == step.b:
                        copy(regs[step.c:], List(leaves).items, step.b)
                        fits = True
            case Node.REMOTE:
                if x.type == c.remote and on_device(c, e, x, step):
                    holder = Held(RemoteArray(x)._buffer)
                    inputs[step.b] = Pointer(c.PyLong_AsLongLong(holder.handles.items[0]))
                    c.Py_IncRef(holder.handles)
                    owned[own] = holder.handles
                    own += 1
                    fits = True
            case Node.OWN:
                # Registers borrow what containers hold. Those of this one keep it from now on:
                # looking into another dict may run Python code, which could take it out.
                for k in range(step.b):
                    item = regs[step.c + k]
                    c.Py_IncRef(item)
                    owned[own] = item
                    own += 1
                fits = True
        if not fits:
            # What a user's function raises, flattening or comparing, is the call's result.
            if c.PyErr_Occurred() != NULL:
                status[0] = 1
            release(c, owned, own)
            return NULL

    # ---------------------------------------------------------------- the call
    if e.remote != NULL:
        status[0] = 1
        return launch(c, e, inputs, owned, own)
    arena: Pointer = NULL
    if e.needs_arena != 0:
        arena = atomic_exchange(place(e, "arena"), NULL, SEQUENTIAL)
        if arena == NULL:  # another thread is in this program
            release(c, owned, own)
            return NULL
    status[0] = 1
    outputs = stack(Pointer, e.outputs)
    tree = stack(Object, e.oregs)
    clear(tree, e.oregs)
    if not allocate(c, e, outputs, tree):
        give_back(e, arena)
        release(c, owned, own)
        release(c, tree, e.oregs)
        return NULL
    failed = 0
    if e.unlock != 0:
        thread = c.PyEval_SaveThread()
        failed = e.main(inputs, outputs, arena, e.consts)
        c.PyEval_RestoreThread(thread)
    else:
        failed = e.main(inputs, outputs, arena, e.consts)
    give_back(e, arena)
    release(c, owned, own)
    if failed != 0:
        release(c, tree, e.oregs)
        return c.PyObject_Vectorcall(e.failed, NULL, 0, NULL)
    return finished(c, e, tree)


@native
def finished(c: CallContext, e: CallEntry, tree: Array[Object]) -> Object:
    """The result, its leaves being in place."""
    if build(c, e, tree):
        if e.builder == NULL:
            return tree[0]
        made = call_with(c, e.builder, tree[0])
        c.Py_DecRef(tree[0])
        return made
    release(c, tree, e.oregs)
    return NULL


# -------------------------------------------------------------------- on a device
@native
def on_device(c: CallContext, e: CallEntry, x: Object, step: Step) -> bool:
    """Whether an array has the aval, and lies where the program runs, as the step says."""
    array = RemoteArray(x)
    holder = Held(array._buffer)
    if holder == NULL or array._aval != Object(step.a):
        return False
    if step.c != 0 and array._sharding != Object(step.c):
        return False
    if holder.devices != e.remote.devices:  # whose tuple tells the kind of memory, too
        return False
    return Object(holder.handles) != NULL  # it is computed later


@native
def launch(
    c: CallContext, e: CallEntry, inputs: Array[Pointer], owned: Array[Object], own: Int
) -> Object:
    """Run a program on a device; its result, which may still be computed."""
    r = e.remote
    given = stack(Pointer, r.helds + e.inputs)
    copy(given, r.held, r.helds)
    copy(given[r.helds:], inputs, e.inputs)
    made = stack(Pointer, e.outputs)
    lists = stack(Pointer, 2)
    lists[0] = given
    lists[1] = made
    frame = stack(Pointer, r.words)
    copy(frame, r.frame, r.words)
    frame[r.arguments] = lists
    frame[r.results] = lists[1:]
    thread = c.PyEval_SaveThread()
    error = r.execute(frame)
    c.PyEval_RestoreThread(thread)
    release(c, owned, own)
    if error != NULL:
        number = c.PyLong_FromLongLong(Int(error))
        c.Py_DecRef(call_with(c, r.check, number))
        c.Py_DecRef(number)
        return NULL
    tree = stack(Object, e.oregs)
    clear(tree, e.oregs)
    line = c.PyObject_Vectorcall(r.line, tree, 0, NULL)
    for k in range(e.outputs):
        out = e.output[k]
        tree[out.register] = placed(c, r, out, Int(made[k]), line)
        if tree[out.register] == NULL:
            c.Py_DecRef(line)
            release(c, tree, e.oregs)
            return NULL
    c.Py_DecRef(line)
    return finished(c, e, tree)


@native
def placed(c: CallContext, r: RemoteCall, out: Output, number: Int, line: Object) -> Object:
    """A result by the number of its handle; NULL with an exception set."""
    plain = c.PyLong_FromLongLong(number)
    handle = call_with(c, r.handle, plain)
    c.Py_DecRef(plain)
    handles = c.PyTuple_New(1)
    held = c.PyType_GenericAlloc(r.buffer, 0)
    made = c.PyType_GenericAlloc(c.remote, 0)
    if line == NULL or handle == NULL or handles == NULL or held == NULL or made == NULL:
        c.Py_DecRef(handle)
        c.Py_DecRef(handles)
        c.Py_DecRef(held)
        c.Py_DecRef(made)
        return NULL
    Tuple(handles).items[0] = handle
    holder = Held(held)
    holder.handles = Tuple(handles)
    holder.devices = r.devices
    c.Py_IncRef(r.devices)
    holder.source = line
    c.Py_IncRef(line)
    holder.maker = r.maker
    c.Py_IncRef(r.maker)
    array = RemoteArray(made)
    array._buffer = held
    array._aval = out.aval
    c.Py_IncRef(out.aval)
    array._sharding = out.dtype
    c.Py_IncRef(out.dtype)
    return made


@native
def allocate(c: CallContext, e: CallEntry, data: Array[Pointer], tree: Array[Object]) -> bool:
    """Make the arrays of the results, and note where their elements lie."""
    for k in range(e.outputs):
        out = e.output[k]
        value = Object(NULL)
        if out.maker == NULL:
            c.Py_IncRef(out.dtype)
            value = c.new_array(c.ndarray, out.dtype, out.rank, out.dims, NULL, NULL, 0, NULL)
        else:
            value = c.PyObject_CallObject(out.maker, NULL)
        if value == NULL:
            return False
        made = c.PyType_GenericAlloc(c.array, 0)
        if made == NULL:
            c.Py_DecRef(value)
            return False
        array = ArrayImpl(made)
        array._aval = out.aval
        c.Py_IncRef(out.aval)
        array._value = value
        tree[out.register] = made
        data[k] = NdArray(value).data
    return True


@native
def build(c: CallContext, e: CallEntry, tree: Array[Object]) -> bool:
    """Build the result's tree, its leaves being in place."""
    for i in range(e.builds):
        step = e.build[i]
        n = step.b
        parts = tree[step.c:]
        made = Object(step.a)
        match step.code:
            case Node.TUPLE:
                made = c.PyTuple_New(n)
                tree[step.register] = made
                if made == NULL:
                    return False
                copy(Tuple(made).items, parts, n)
                clear(parts, n)
            case Node.LIST:
                made = c.PyList_New(n)
                tree[step.register] = made
                if made == NULL:
                    return False
                copy(List(made).items, parts, n)
                clear(parts, n)
            case Node.DICT:
                keys = Array[Object](step.a)
                made = c.PyDict_New()
                tree[step.register] = made
                if made == NULL:
                    return False
                for k in range(n):
                    part = parts[k]
                    wrong = c.PyDict_SetItem(made, keys[k], part)
                    parts[k] = NULL
                    c.Py_DecRef(part)
                    if wrong != 0:
                        return False
            case _:
                c.Py_IncRef(made)
                tree[step.register] = made
    return True


def functions() -> list[object]:
    """What `native.calls` installs."""
    return [call]
