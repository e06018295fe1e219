"""Arguments for the functions of `numpy` that make, shape and put together arrays."""

from __future__ import annotations

from comparison.draw import Call, Draw, call, sequence, source
from comparison.families import ALL, Table, several

TABLE: Table = {}


def of(names: str):
    """Enter the decorated maker for these functions of `numpy`."""

    def enter(maker):
        several(TABLE, "numpy", names, maker)
        return maker

    return enter


# --- shapes --------------------------------------------------------------------------------------


@of("reshape")
def reshape(d: Draw) -> Call:
    shape = d.shape()
    size = 1
    for n in shape:
        size *= n
    new = d.choice(((size,), (-1,), (1, size), (size, 1), (2, -1), (-1, 1, 1), shape, (3, 2)))
    return call(
        d.operand(shape, ALL),
        new[0] if new and d.chance(0.15) else new,
        **d.some(0.2, order=lambda: d.choice("CFA")),
    )


@of("ravel")
def ravel(d: Draw) -> Call:
    return call(d.operand(kinds=ALL), **d.some(0.3, order=lambda: d.choice("CFAK")))


@of("transpose permute_dims")
def transpose(d: Draw) -> Call:
    shape = d.shape()
    axes = d.sample(range(len(shape)), len(shape))
    axes = [a - len(shape) if d.chance(0.2) else a for a in axes]
    return call(d.operand(shape, ALL), *([tuple(axes)] if d.chance(0.8) else []))


@of("swapaxes")
def swapaxes(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(d.operand(shape, ALL), *(d.axis(len(shape), 0, False) for _ in range(2)))


@of("moveaxis")
def moveaxis(d: Draw) -> Call:
    shape = d.shape(1, 3)
    if d.chance(0.3):
        return call(
            d.operand(shape, ALL),
            tuple(d.sample(range(len(shape)), 1)),
            tuple(d.sample(range(len(shape)), 1)),
        )
    return call(d.operand(shape, ALL), *(d.axis(len(shape), 0, False) for _ in range(2)))


@of("rollaxis")
def rollaxis(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(
        d.operand(shape, ALL),
        d.axis(len(shape), 0, False),
        **d.some(0.6, start=lambda: d.randint(-len(shape), len(shape))),
    )


@of("squeeze")
def squeeze(d: Draw) -> Call:
    shape = tuple(d.choice((1, 1, 2)) for _ in range(d.randint(0, 3)))
    return call(d.operand(shape, ALL), **d.some(0.6, axis=lambda: d.axis(len(shape), 0.1)))


@of("expand_dims")
def expand_dims(d: Draw) -> Call:
    shape = d.shape()
    return call(
        d.operand(shape, ALL), d.choice((0, -1, (0, 1), (0, -1), len(shape), len(shape) + 1))
    )


@of("broadcast_to")
def broadcast_to(d: Draw) -> Call:
    full = d.shape()
    shape = tuple(1 if d.chance(0.3) else n for n in full)[d.randint(0, len(full)) :]
    return call(d.operand(shape, ALL), full if d.chance(0.95) else (*full, 7))


@of("broadcast_arrays")
def broadcast_arrays(d: Draw) -> Call:
    return call(*d.operands(d.randint(1, 3), ALL))


@of("broadcast_shapes")
def broadcast_shapes(d: Draw) -> Call:
    full = d.shape()
    return call(
        *[
            tuple(1 if d.chance(0.3) else n for n in full)[d.randint(0, len(full)) :]
            if d.chance(0.95)
            else d.shape()
            for _ in range(3)
        ]
    )


@of("concatenate concat")
def concatenate(d: Draw) -> Call:
    shape = d.shape(1, 3)
    axis = d.randrange(-len(shape), len(shape))
    parts = []
    for _ in range(d.randint(1, 3)):
        part = list(shape)
        part[axis] = d.extent()
        parts.append(d.operand(tuple(part), ALL))
    return call(
        sequence(parts, d.choice(("[]", "()"))),
        **d.some(0.9, axis=lambda: axis if d.chance(0.9) else None),
        **d.some(0.2, dtype=d.dtype_arg),
    )


@of("stack")
def stack(d: Draw) -> Call:
    shape = d.shape(0, 2)
    parts = [d.operand(shape, ALL) for _ in range(d.randint(1, 3))]
    return call(
        sequence(parts),
        **d.some(0.6, axis=lambda: d.randint(-len(shape) - 1, len(shape))),
        **d.some(0.2, dtype=d.dtype_arg),
    )


@of("hstack vstack dstack column_stack")
def stacks(d: Draw) -> Call:
    shape = d.shape(0, 3)
    dtype = {} if d.chance(0.8) else d.some(0, dtype=d.dtype_arg)
    return call(sequence([d.operand(shape, ALL) for _ in range(d.randint(1, 3))]), **dtype)


@of("block")
def block(d: Draw) -> Call:
    row = [d.operand((2, d.extent()), ALL) for _ in range(2)]
    return call(sequence(row) if d.chance(0.5) else sequence([sequence(row), sequence(row)]))


@of("append")
def append(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.operand(shape, ALL),
        d.operand(shape, ALL),
        **d.some(0.5, axis=lambda: d.axis(len(shape), 0, False)),
    )


@of("split array_split")
def split(d: Draw) -> Call:
    shape = (d.choice((4, 6, 5)), d.choice((2, 4)))
    return call(
        d.operand(shape, ALL),
        d.choice((2, 3, 1, [1, 3], [2], (2, 2))),
        **d.some(0.5, axis=lambda: d.axis(2, 0, False)),
    )


@of("hsplit vsplit dsplit")
def splits(d: Draw) -> Call:
    return call(d.operand(d.choice(((4,), (4, 4), (2, 4, 4))), ALL), d.choice((2, [1, 3], 4)))


@of("unstack")
def unstack(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(d.operand(shape, ALL), **d.some(0.6, axis=lambda: d.axis(len(shape), 0, False)))


@of("tile")
def tile(d: Draw) -> Call:
    return call(d.operand(d.shape(0, 2), ALL), d.choice((2, (2,), (2, 1), (1, 2, 2), 0, ())))


@of("repeat")
def repeat(d: Draw) -> Call:
    shape = d.shape(0, 2)
    return call(
        d.operand(shape, ALL),
        d.choice((2, 0, 1, [2], source("np.array([1, 2, 0])"))),
        **d.some(0.5, axis=lambda: d.axis(len(shape), 0, False)),
        **d.some(0.2, total_repeat_length=lambda: d.randint(0, 9)),
    )


@of("flip")
def flip(d: Draw) -> Call:
    shape = d.shape()
    return call(d.operand(shape, ALL), **d.some(0.7, axis=lambda: d.axis(len(shape))))


@of("roll")
def roll(d: Draw) -> Call:
    shape = d.shape()
    axis = d.axis(len(shape))
    shift = d.randint(-5, 5)
    if isinstance(axis, tuple) and d.chance(0.5):
        shift = tuple(d.randint(-4, 4) for _ in axis)
    return call(d.operand(shape, ALL), shift, **d.some(0.8, axis=axis))


@of("rot90")
def rot90(d: Draw) -> Call:
    shape = d.shape(2, 3)
    return call(
        d.operand(shape, ALL),
        **d.some(0.6, k=lambda: d.randint(-5, 5)),
        **d.some(0.4, axes=lambda: tuple(d.sample(range(-1, len(shape) - 1), 2))),
    )


@of("pad")
def pad(d: Draw) -> Call:
    shape = d.filled(1, 2) if d.chance(0.9) else d.shape(1, 2)
    widths = d.choice(
        (1, (1, 2), 0, ((1, 2),), tuple((d.randint(0, 3), d.randint(0, 2)) for _ in shape))
    )
    mode = d.choice(
        "constant edge reflect symmetric wrap linear_ramp maximum mean median minimum "
        "empty constant".split()
    )
    options = {}
    if mode == "constant":
        options = d.some(0.5, constant_values=lambda: d.choice((1, 2.5, (1, 2))))
    elif mode == "linear_ramp":
        options = d.some(0.5, end_values=lambda: d.choice((1, (1, 2))))
    elif mode in ("maximum", "mean", "median", "minimum"):
        options = d.some(0.5, stat_length=lambda: d.randint(1, 3))
    elif mode in ("reflect", "symmetric"):
        options = d.some(0.3, reflect_type="odd")
    return call(d.operand(shape, "ffficb", "plain"), widths, mode, **options)


@of("resize")
def resize(d: Draw) -> Call:
    return call(d.operand(kinds=ALL), d.choice((3, (2, 3), (0,), (), (5, 2))))


@of("diag diagflat")
def diag(d: Draw) -> Call:
    return call(d.operand(d.shape(1, 2), ALL), **d.some(0.6, k=lambda: d.randint(-3, 3)))


@of("diagonal trace")
def diagonal(d: Draw) -> Call:
    shape = d.shape(2, 3)
    axes = d.sample(range(len(shape)), 2)
    return call(
        d.operand(shape, ALL),
        **d.some(0.5, offset=lambda: d.randint(-3, 3)),
        **(dict(axis1=axes[0], axis2=axes[1]) if d.chance(0.4) else {}),
    )


@of("tril triu")
def triangles(d: Draw) -> Call:
    return call(
        d.operand(d.shape(1 if d.chance(0.05) else 2, 3), ALL),
        **d.some(0.6, k=lambda: d.randint(-3, 3)),
    )


@of("trim_zeros")
def trim_zeros(d: Draw) -> Call:
    return call(
        d.array((d.randint(0, 5),), "fi", "small"),
        **d.some(0.5, trim=lambda: d.choice(("f", "b", "fb"))),
    )


@of("fill_diagonal")
def fill_diagonal(d: Draw) -> Call:
    n = d.randint(1, 4)
    return call(
        d.array(d.choice(((n, n), (n, 3), (n, n, n))), "fi"),
        d.choice((d.scalar("fi"), d.array((n,), "fi"))),
        inplace=False,
    )


@of("put")
def put(d: Draw) -> Call:
    return call(
        d.array((2, 3), "fi"),
        source(d.choice(("np.array([0, 2])", "1", "[1, 3]"))),
        d.choice((d.scalar("fi"), d.array((2,), "fi"))),
        inplace=False,
        **d.some(0.4, mode=lambda: d.choice(("clip", "wrap"))),
    )


@of("put_along_axis")
def put_along_axis(d: Draw) -> Call:
    axis = d.randrange(2)
    shape = [2, 3]
    shape[axis] = 1
    return call(
        d.array((2, 3), "fi"),
        d.array(tuple(shape), dtype="int32", values="unit"),
        d.scalar("fi"),
        axis,
        inplace=False,
    )


@of("place")
def place(d: Draw) -> Call:
    shape = d.filled(1, 2)
    return call(
        d.array(shape, "fi"), d.array(shape, "b"), d.array((d.randint(1, 3),), "fi"), inplace=False
    )


@of("select")
def select(d: Draw) -> Call:
    shape = d.shape(0, 2)
    n = d.randint(1, 3)
    return call(
        sequence([d.array(shape, "b") for _ in range(n)]),
        sequence([d.operand(shape[d.choice((0, 0, len(shape))) :], "ffi") for _ in range(n)]),
        **d.some(0.4, default=lambda: d.scalar("fi", "plain")),
    )


@of("choose")
def choose(d: Draw) -> Call:
    shape = d.shape(0, 2)
    return call(
        d.array(shape, dtype="int32", values="small"),
        sequence([d.operand(shape, "fi") for _ in range(3)]),
        **d.some(0.7, mode=lambda: d.choice(("wrap", "clip", "raise"))),
    )


@of("compress")
def compress(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.array((d.randint(1, 3),), "b", host=True),
        d.operand(shape, ALL),
        **d.some(0.6, axis=lambda: d.axis(len(shape), 0, False)),
        **d.some(0.3, size=lambda: d.randint(0, 4), fill_value=lambda: 7),
    )


@of("extract")
def extract(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.array(shape, "bi"),
        d.operand(shape, ALL),
        **d.some(0.3, size=lambda: d.randint(0, 4), fill_value=lambda: 7),
    )


@of("take")
def take(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(
        d.operand(shape, ALL),
        d.operand(d.shape(0, 2), "iiiu"),
        **d.some(
            0.6,
            axis=lambda: d.axis(len(shape), 0.1, False),
            mode=lambda: d.choice(("clip", "wrap", "fill")),
            fill_value=lambda: d.scalar("fi", "plain"),
        ),
    )


@of("take_along_axis")
def take_along_axis(d: Draw) -> Call:
    shape = d.shape(1, 3)
    axis = d.randrange(-len(shape), len(shape))
    index = list(shape)
    index[axis] = d.extent()
    return call(
        d.operand(shape, ALL),
        d.array(tuple(index), "iiu"),
        axis,
        **d.some(
            0.3, mode=lambda: d.choice(("clip", "fill")), fill_value=lambda: d.scalar("fi", "plain")
        ),
    )


@of("delete")
def delete(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.operand(shape, ALL),
        source(
            d.choice(("0", "-1", "[0, 1]", "slice(0, 2)", "np.array([0])", "slice(None, None, 2)"))
        ),
        **d.some(0.6, axis=lambda: d.axis(len(shape), 0, False)),
    )


@of("insert")
def insert(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.operand(shape, ALL),
        source(d.choice(("0", "-1", "[0, 1]", "slice(0, 2)"))),
        d.scalar("fi", "plain"),
        **d.some(0.6, axis=lambda: d.axis(len(shape), 0, False)),
    )


@of("apply_along_axis")
def apply_along_axis(d: Draw) -> Call:
    shape = d.filled(1, 3)
    return call(
        source(d.choice(("jnp.sum", "jnp.sort", "lambda v: v[:1] * 2"))),
        d.axis(len(shape), 0, False),
        d.array(shape, "fi"),
    )


@of("apply_over_axes")
def apply_over_axes(d: Draw) -> Call:
    shape = d.filled(1, 3)
    return call(source("jnp.sum"), d.array(shape, "fi"), d.choice(([0], [0, -1], 0)))


# --- making arrays -------------------------------------------------------------------------------


@of("zeros ones empty")
def filled(d: Draw) -> Call:
    return call(d.choice((d.shape(), 3, [2, 2], -1)), **d.some(0.6, dtype=d.dtype_arg))


@of("full")
def full(d: Draw) -> Call:
    return call(d.choice((d.shape(), 3)), d.operand((), ALL), **d.some(0.5, dtype=d.dtype_arg))


@of("zeros_like ones_like empty_like")
def filled_like(d: Draw) -> Call:
    return call(d.operand(kinds=ALL), **d.some(0.4, dtype=d.dtype_arg, shape=d.shape))


@of("full_like")
def full_like(d: Draw) -> Call:
    return call(
        d.operand(kinds=ALL), d.operand((), ALL), **d.some(0.4, dtype=d.dtype_arg, shape=d.shape)
    )


@of("eye tri")
def eye(d: Draw) -> Call:
    return call(
        d.randint(0, 4),
        **d.some(0.4, M=lambda: d.randint(0, 4), k=lambda: d.randint(-3, 3), dtype=d.dtype_arg),
    )


@of("identity")
def identity(d: Draw) -> Call:
    return call(d.randint(0, 4), **d.some(0.5, dtype=d.dtype_arg))


@of("arange")
def arange(d: Draw) -> Call:
    numbers = [
        d.choice((d.randint(-4, 9), round(d.gauss(0, 4), 2))) for _ in range(d.randint(1, 3))
    ]
    if len(numbers) == 3 and numbers[2] == 0 and d.chance(0.9):
        numbers[2] = 2
    return call(*numbers, **d.some(0.3, dtype=lambda: d.dtype_arg("fiu")))


@of("linspace logspace geomspace")
def linspace(d: Draw) -> Call:
    shape = d.shape(0, 1)
    return call(
        d.operand(shape, "ffic", "positive"),
        d.operand(shape, "ffic", "positive"),
        **d.some(0.6, num=lambda: d.choice((5, 1, 0, 2, 7))),
        **d.some(0.25, endpoint=False, dtype=lambda: d.dtype_arg("fci"), axis=lambda: -1),
    )


@of("array asarray")
def array(d: Draw) -> Call:
    what = d.choice(
        (
            d.operand(kinds=ALL),
            sequence([d.operand((), ALL) for _ in range(3)]),
            source("[[1, 2], [3, 4.5]]"),
            source("[]"),
            source("[1, True]"),
            source("[[1], [2, 3]]"),
            d.scalar(ALL),
            d.wrong(),
        )
    )
    return call(what, **d.some(0.35, dtype=d.dtype_arg), **d.some(0.15, ndmin=lambda: 2))


TABLE["numpy.asarray"] = lambda d: call(
    d.operand(kinds=ALL), **d.some(0.4, dtype=d.dtype_arg, copy=True)
)


@of("astype")
def astype(d: Draw) -> Call:
    return call(d.array(kinds=ALL), d.dtype_arg())


@of("copy")
def copy(d: Draw) -> Call:
    return call(d.operand(kinds=ALL))


@of("meshgrid")
def meshgrid(d: Draw) -> Call:
    return call(
        *[d.operand(d.shape(0, 1), ALL) for _ in range(d.randint(0, 3))],
        **d.some(0.3, indexing=lambda: d.choice(("ij", "xy")), sparse=True),
    )


@of("indices")
def indices(d: Draw) -> Call:
    return call(d.shape(1, 3), **d.some(0.3, dtype=d.dtype_arg, sparse=True))


@of("tril_indices triu_indices")
def triangle_indices(d: Draw) -> Call:
    return call(
        d.randint(0, 4), **d.some(0.4, k=lambda: d.randint(-2, 2), m=lambda: d.randint(1, 4))
    )


@of("tril_indices_from triu_indices_from")
def triangle_indices_from(d: Draw) -> Call:
    return call(d.array(d.shape(2, 2), ALL), **d.some(0.4, k=lambda: d.randint(-2, 2)))


@of("diag_indices")
def diag_indices(d: Draw) -> Call:
    return call(d.randint(0, 4), **d.some(0.4, ndim=lambda: d.randint(1, 3)))


@of("diag_indices_from")
def diag_indices_from(d: Draw) -> Call:
    n = d.randint(1, 3)
    return call(d.array((n,) * d.randint(1, 3), ALL))


@of("mask_indices")
def mask_indices(d: Draw) -> Call:
    return call(
        d.randint(1, 4),
        source(d.choice(("jnp.triu", "jnp.tril"))),
        **d.some(0.4, k=lambda: d.randint(-1, 1)),
    )


@of("ix_")
def ix_(d: Draw) -> Call:
    return call(*[d.array((d.extent(),), "iib") for _ in range(d.randint(1, 3))])


@of("bartlett blackman hamming hanning")
def window(d: Draw) -> Call:
    return call(d.randint(0, 9))


@of("kaiser")
def kaiser(d: Draw) -> Call:
    return call(d.randint(0, 9), d.scalar("f", "positive"))


@of("vander")
def vander(d: Draw) -> Call:
    return call(
        d.array(d.shape(1, 1), "fic", "small"),
        **d.some(0.5, N=lambda: d.randint(0, 4), increasing=True),
    )


@of("fromfunction")
def fromfunction(d: Draw) -> Call:
    return call(
        source("lambda i, j: i * 2 + j"),
        (d.extent(), d.extent()),
        **d.some(0.4, dtype=lambda: d.dtype_arg("fi")),
    )


@of("frombuffer")
def frombuffer(d: Draw) -> Call:
    return call(
        source("b'abcdefghijklmnop'"),
        dtype=source(d.choice(("'int8'", "'float32'", "'int32'"))),
        **d.some(0.3, count=lambda: 2, offset=lambda: 4),
    )


@of("fromstring")
def fromstring(d: Draw) -> Call:
    return call(source(repr("1 2 3 4")), sep=" ", **d.some(0.5, dtype=lambda: d.dtype_arg("fi")))
