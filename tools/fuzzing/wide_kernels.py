"""Statements of the wider generator with kernels of their own: products, convolutions, transforms,
factorizations, random numbers, special functions, bits and narrow dtypes."""

from __future__ import annotations

from fuzzing.arrays import is_float, is_inexact
from fuzzing.drawer import Drawer, Named
from fuzzing.statements import NON_EMPTY
from fuzzing.wide_places import REAL, last_axis, used, wide

SPECIAL = (
    "jsp.gammaln(jnp.abs({}) + 0.5)",
    "jsp.digamma(jnp.abs({}) + 0.5)",
    "jsp.erf({})",
    "jsp.erfc({})",
    "jsp.erfinv(jnp.tanh({}) * 0.9)",
    "jsp.i0e({})",
    "jsp.i1e({})",
    "jsp.expit({})",
    "jsp.logit(jnp.tanh({}) * 0.4 + 0.5)",
    "jsp.entr(jnp.abs({}) + 0.1)",
    "jsp.xlogy(jnp.abs({}), jnp.abs({}) + 1)",
    "jsp.ndtr({})",
    "jsp.log_ndtr({})",
    "jsp.ndtri(jnp.tanh({}) * 0.4 + 0.5)",
    "jsp.i0(jnp.tanh({}))",
    "jsp.xlog1py({}, jnp.abs({}))",
    "jsp.zeta(jnp.abs({}) + 2, 1.5)",
    "jsp.polygamma(1, jnp.abs({}) + 1)",
    "jsp.gammainc(jnp.abs({}) + 0.5, jnp.abs({}) + 1)",
    "jsp.kl_div(jnp.abs({}) + 1, 2)",
    "jnp.tan(jnp.tanh({}))",
    "jnp.arccos(jnp.tanh({}) * 0.9)",
    "jnp.arctanh(jnp.tanh({}) * 0.9)",
    "jnp.arccosh(jnp.abs({}) + 1.5)",
    "jnp.arcsin(jnp.tanh({}) * 0.9)",
    "jnp.cosh(jnp.tanh({}))",
    "jnp.log10(jnp.abs({}) + 1)",
    "jnp.deg2rad({})",
    "jnp.i0({})",
    "lax.rsqrt(jnp.abs({}) + 1)",
    "lax.logistic({})",
    "nn.swish({})",
    "nn.hard_tanh({})",
    "nn.celu({})",
    "nn.selu({})",
    "nn.mish({})",
    "nn.squareplus({})",
    "nn.soft_sign({})",
    "nn.relu6({})",
    "nn.hard_swish({})",
    "jnp.power(jnp.abs({}) + 0.5, 1.7)",
    "jnp.power({}, 3)",
    "lax.integer_pow({}, 4)",
    "jnp.exp(-jnp.square({}))",
    "jnp.nan_to_num(1 / ({} + 0.0625))",
)
BITS = (
    "lax.clz({})",
    "lax.population_count({})",
    "{} ^ ({} << 1)",
    "({} >> 1) & 3",
    "~{} | 5",
    "jnp.lcm({} % 7, 6)",
    "{} // 3",
    "{} % 5",
    "{} * {}",
    "jnp.floor_divide({}, 2)",
    "jnp.right_shift({}, 2)",
    "lax.shift_right_logical({}, jnp.ones_like({}))",
    "jnp.clip({}, 1, 3)",
    "jnp.power({}, 2)",
    "jnp.minimum({}, {} >> 1)",
    "{} == 2",
    "jnp.packbits({} > 1)",
    "jnp.sign({})",
    "jnp.abs({})",
    "jnp.where({} > 1, {}, -{})",
    "jnp.unpackbits({}.astype('uint8'))",
    "jnp.bitwise_count({})",
    "jnp.float32(0.5) * {}",
    "jnp.sum({}, dtype='int8')",
    "{} + {}",
)
COMPLEX = (
    "jnp.sqrt({} * jnp.conj({}) + 1 + 0.25j)",
    "jnp.log(jnp.abs({}) + 1 + 0.5j)",
    "jnp.angle({} + 9)",
    "jnp.sin({})",
    "jnp.cos({} * 0.5)",
    "jnp.exp({} * 1j)",
    "{} / (jnp.abs({}) + 1)",
    "{} * {}",
    "1 / ({} + 9)",
    "jnp.sinh({} * 0.5)",
    "jnp.real({})",
    "jnp.imag({})",
    "jnp.conj({})",
    "{} ** 2",
    "jnp.abs({})",
    "jnp.where({} == 0, 1, {})",
    "lax.complex(jnp.imag({}), jnp.real({}))",
    "jnp.sign({} + 9)",
    "jnp.log1p({} * 0.25 + 1)",
    "jnp.expm1({} * 0.5)",
)
NARROW = ("float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float8_e4m3b11fnuz", "int2")


def filled(text: str, name: str) -> str:
    return text.replace("{}", name)


@wide(1.5)
def fresh(d: Drawer) -> str | None:
    """Numbers that nobody gave, of a new shape; larger than arguments are."""
    rank = d.number(1, 4)
    top = 400 if rank == 1 else 40 if rank == 2 else 12
    top = 4 * top if d.largest > 20_000 else top
    shape = tuple(d.number(1, top) for _ in range(rank))
    dtype = d.one(
        [
            "float32",
            "float32",
            "float32",
            "bfloat16",
            "float16",
            "int32",
            "int8",
            "uint8",
            "complex64",
            "float64" if d.wide_numbers() else "float32",
        ]
    )
    size = 1
    for n in shape:
        size *= n
    if "int" in dtype:
        return f"(jnp.arange({size}) * 7 % 11).reshape{shape}.astype('{dtype}')"
    if d.chance(0.3):
        return f"random.normal(random.key({d.number(0, 99)}), {shape}, '{dtype}')"
    return f"(jnp.arange({size}) * 7 % 23 / 8 - 1).reshape{shape}.astype('{dtype}')"


@wide(2)
def special(d: Drawer) -> None:
    x = d.floating()
    if x is not None:
        used(d, filled(d.one(SPECIAL), x[0]))


@wide(2)
def bits(d: Drawer) -> None:
    x = d.pick(lambda v: v.dtype.kind in "iu")
    if x is None:
        return
    if d.chance(0.2):
        name = x[1].dtype.name
        other = {"int32": "float32", "uint32": "int32", "int8": "uint8", "uint8": "int8"}.get(
            name, name
        )
        if other != "float32":
            return used(d, f"lax.bitcast_convert_type({x[0]}, '{other}')")
    used(d, filled(d.one(BITS), x[0]))


@wide(1)
def parts(d: Drawer) -> None:
    """Bits and parts of floats."""
    x = d.pick(lambda v: v.dtype in ("float32", "float64"))
    if x is None:
        return
    name, v = x
    integer = f"int{v.dtype.itemsize * 8}"
    choice = d.number(0, 8)
    if choice == 0:
        d.attempt(f"jnp.frexp({name} + 9)")
    elif choice == 1:
        d.attempt(f"jnp.modf({name} + 0.3)")
    elif choice == 2:
        d.attempt(f"jnp.divmod({name} + 0.3, 0.7)")
    elif choice == 3:
        used(d, f"jnp.ldexp({name}, 3)")
    elif choice == 4:
        used(d, f"jnp.signbit({name} + 0.01)")
    elif choice == 5:
        used(d, f"lax.reduce_precision({name}, 8, {d.number(5, 12)})")
    elif choice == 6:
        used(d, f"jnp.heaviside({name} + 0.01, 0.5)")
    else:
        used(
            d,
            f"lax.bitcast_convert_type(lax.bitcast_convert_type({name}, '{integer}') & -16, '{v.dtype.name}')",
        )


@wide(1)
def narrow(d: Drawer) -> None:
    """Through a dtype of few bits and back."""
    x = d.pick(lambda v: v.dtype.kind in "iu" or is_float(v.dtype))
    if x is None:
        return
    name, v = x
    target = d.one(NARROW)
    if "int" in target:
        low = 0 if target.startswith("u") else -2
        inner = f"jnp.clip(jnp.nan_to_num({name}), {low}, 1).astype('{target}')"
    else:
        inner = f"jnp.clip(jnp.nan_to_num({name}), -99, 99).astype('{target}')"
    axis = f", axis={d.number(0, v.ndim)}" if v.ndim else ""
    back = "int8" if "int" in target else "float32"
    used(
        d,
        d.one(
            [
                f"{inner}.astype('{back}')",
                f"jnp.max({inner}{axis}).astype('{back}')" if v.size else name,
                f"({inner} + {inner}).astype('{back}')",
                f"jnp.flip({inner}{axis}).astype('{back}')",
            ]
        ),
    )


@wide(1)
def complex_numbers(d: Drawer) -> None:
    x = d.pick(lambda v: v.dtype.kind == "c")
    if x is None:
        y = d.pick(lambda v: v.dtype in ("float32", "float64"))
        if y is not None:
            used(d, f"lax.complex({y[0]}, jnp.sin({y[0]}))")
        return
    used(d, filled(d.one(COMPLEX), x[0]))


def scaled(x: Named) -> str:
    return f"({x[0]} * 0.25)" if is_inexact(x[1].dtype) else x[0]


@wide(3.5)
def products(d: Drawer) -> None:
    """Products over any axes, with batches."""
    x = d.pick(lambda v: 1 <= v.ndim <= 4 and v.dtype.kind != "b")
    if x is None:
        return
    name, v = x
    kind = d.number(0, 10)
    if kind < 4:
        y = d.pick(lambda w: w.dtype == v.dtype and w.ndim >= 1 and set(w.shape) & set(v.shape))
        if y is None:
            return
        w = y[1]
        pairs = [(i, j) for i in range(v.ndim) for j in range(w.ndim) if v.shape[i] == w.shape[j]]
        d.rng.shuffle(pairs)
        chosen: list[tuple[int, int]] = []
        for i, j in pairs:
            if all(i != p and j != q for p, q in chosen):
                chosen.append((int(i), int(j)))
        contracted = d.number(0, min(len(chosen), 2) + 1)
        batched = d.number(0, len(chosen) - contracted + 1)
        c, b = chosen[:contracted], chosen[contracted : contracted + batched]
        numbers = tuple(tuple(tuple(p[k] for p in group) for k in (0, 1)) for group in (c, b))
        wanted = ""
        if d.chance(0.2) and v.dtype.name in ("bfloat16", "float16", "int8"):
            wanted = f", preferred_element_type='{'int32' if v.dtype.kind == 'i' else 'float32'}'"
        return used(d, f"lax.dot_general({scaled(x)}, {y[0]}, {numbers}{wanted})")
    if kind < 6:
        y = d.pick(
            lambda w: w.dtype == v.dtype and w.ndim >= 1 and w.shape[-min(2, w.ndim)] == v.shape[-1]
        )
        return None if y is None else used(d, f"jnp.matmul({scaled(x)}, {y[0]})")
    if kind == 6:
        return used(d, f"jnp.einsum('...i,...i->...', {scaled(x)}, {name})")
    if kind == 7 and v.ndim > 1:
        letters = "abcd"[: v.ndim]
        out = "".join(d.rng.permutation(list(letters))[: d.number(0, v.ndim + 1)])
        return used(d, f"jnp.einsum('{letters},{letters}->{out}', {scaled(x)}, {name})")
    if kind == 8 and v.ndim > 1:
        return used(d, f"jnp.tensordot({scaled(x)}, {name}, axes=([{v.ndim - 1}], [{v.ndim - 1}]))")
    if v.ndim == 1:
        return used(
            d,
            d.one(
                [
                    f"jnp.vdot({scaled(x)}, {name})",
                    f"jnp.inner({scaled(x)}, {name})",
                    f"jnp.outer({name}, {name})",
                    f"jnp.convolve({name}, {name}[:4])",
                    f"jnp.correlate({name}, {name}[:3], mode='full')",
                    f"jnp.polyval({name}[:4], {name})",
                ]
            ),
        )
    t = f"jnp.swapaxes({name}, -1, -2)"
    return used(
        d,
        d.one(
            [
                f"{t} @ {scaled(x)}",
                f"nn.relu({scaled(x)} @ {t} + 1)" if is_float(v.dtype) else name,
                f"jnp.sum({scaled(x)} @ {t}, axis=-1)",
                f"({scaled(x)} @ {t}) * 0.5 - 1",
            ]
        ),
    )


@wide(2)
def convolutions(d: Drawer) -> None:
    x = d.floating(lambda v: v.size >= 4)
    if x is None:
        return
    name, v = x
    space = d.number(1, 3)
    groups = d.one([1, 1, 1, 2])
    batch, channels, features = d.number(1, 4), groups * d.number(1, 4), groups * d.number(1, 4)
    sizes = [d.number(3, 12) for _ in range(space)]
    kernel = [d.number(1, 4) for _ in range(space)]
    lhs = f"jnp.resize({name}, {(batch, channels, *sizes)})"
    rhs = f"jnp.resize({name}, {(features, channels // groups, *kernel)}) * 0.25"
    strides = tuple(d.number(1, 3) for _ in sizes)
    padding = d.one(["'SAME'", "'VALID'", str([(d.number(0, 3), d.number(0, 3)) for _ in sizes])])
    more = f", feature_group_count={groups}" if groups > 1 else ""
    if "[" in padding and d.chance(0.4):
        more += f", lhs_dilation={tuple(d.number(1, 3) for _ in sizes)}"
    if d.chance(0.3):
        more += f", rhs_dilation={tuple(d.number(1, 3) for _ in sizes)}"
    if groups == 1 and space == 2 and d.chance(0.4):
        lhs, rhs = f"jnp.transpose({lhs}, (0, 2, 3, 1))", f"jnp.transpose({rhs}, (2, 3, 1, 0))"
        more += ", dimension_numbers=('NHWC', 'HWIO', 'NHWC')"
    if groups == 1 and "lhs_dilation" not in more and d.chance(0.1):
        used(
            d,
            f"lax.conv_transpose({lhs}, {rhs}, {strides}, {padding if padding[0] != '[' else repr('SAME')}, "
            f"dimension_numbers=('NCHW', 'OIHW', 'NCHW'))"
            if space == 2
            else f"jnp.sin({lhs})",
        )
        return
    used(d, f"lax.conv_general_dilated({lhs}, {rhs}, {strides}, {padding}{more})")


@wide(1.5)
def pooled(d: Drawer) -> None:
    x = d.pick(lambda v: REAL(v) and v.dtype.kind != "b" and v.ndim <= 3)
    if x is None:
        return
    name, v = x
    size = tuple(d.number(1, min(n, 4) + 1) for n in v.shape)
    strides = tuple(d.number(1, 3) for _ in v.shape)
    first, f = d.one([("-9", "lax.max"), ("9", "lax.min"), ("0", "lax.add")])
    padding = d.one(["'SAME'", "'VALID'", str([(d.number(0, 3), d.number(0, 3)) for _ in v.shape])])
    more = ""
    if padding[0] == "[" and d.chance(0.5):
        more = (
            f", base_dilation={tuple(d.number(1, 3) for _ in v.shape)}"
            f", window_dilation={tuple(d.number(1, 3) for _ in v.shape)}"
        )
    used(
        d,
        f"lax.reduce_window({name}, np.asarray({first}).astype({name}.dtype), {f}, {size}, {strides}, {padding}{more})",
    )


@wide(1.5)
def transforms(d: Drawer) -> None:
    """Fourier transforms."""
    x = d.pick(
        lambda v: NON_EMPTY(v) and v.dtype.name in ("float32", "float64", "complex64", "complex128")
    )
    if x is None:
        return
    name, v = x
    axis = last_axis(d, v)
    f = d.one(["fft", "ifft", "fft"] if v.dtype.kind == "c" else ["rfft", "fft", "ifft"])
    n = f", n={d.number(1, 40)}" if d.chance(0.3) else ""
    if d.chance(0.15) and v.ndim > 1:
        return used(
            d, f"jnp.fft.{'fft2' if v.dtype.kind == 'c' else 'rfft2'}({name}, norm='ortho')"
        )
    if d.chance(0.2) and v.dtype.kind == "c":
        return used(d, f"jnp.fft.irfft({name}{n}, axis={axis}, norm='ortho')")
    if d.chance(0.1):
        return used(d, f"jnp.fft.fftshift({name}, axes={axis})")
    return used(d, f"jnp.fft.{f}({name}{n}, axis={axis}, norm='ortho')")


@wide(1.5)
def solved(d: Drawer) -> None:
    """Factorizations of matrices that are well conditioned."""
    x = d.pick(lambda v: v.dtype.name in ("float32", "float64") and v.size >= 1)
    if x is None:
        return
    name, v = x
    n = d.one([1, 2, 3, 4, 5, 8, 13])
    batch = d.one([(), (), (3,), (2, 2)])
    square = f"jnp.tanh(jnp.resize({name}, {(*batch, n, n)}))"
    matrix = f"(0.25 * {square} + {n} * jnp.eye({n}, dtype={name}.dtype))"
    t = "jnp.swapaxes({0}, -1, -2)"
    spd = f"(0.25 * {square} + 0.25 * {t.format(square)} + {n} * jnp.eye({n}, dtype={name}.dtype))"
    right = f"jnp.resize({name}, {(*batch, n, d.number(1, 4))})"
    used(
        d,
        d.one(
            [
                f"jnp.linalg.cholesky({spd})",
                f"jnp.linalg.solve({matrix}, {right})",
                f"jnp.linalg.inv({matrix})",
                f"jnp.linalg.slogdet({matrix})[1]",
                f"jnp.linalg.det({matrix} / {n})",
                f"jnp.linalg.eigvalsh({spd})",
                f"jnp.linalg.svd({matrix}, compute_uv=False)",
                f"jnp.abs(jnp.linalg.qr({matrix})[1])",
                f"lax.linalg.triangular_solve({matrix}, {right}, left_side=True, lower={d.one(['True', 'False'])})",
                f"jnp.linalg.matrix_power({matrix} / {n + 1}, 3)",
                f"jnp.linalg.norm({matrix}, axis=-1)",
            ]
        ),
    )


@wide(1)
def drawn(d: Drawer) -> None:
    """Random numbers of keys that are known or computed."""
    key = f"random.key({d.number(0, 9)})"
    y = d.pick(lambda v: v.ndim == 0 and v.dtype.kind in "iu")
    if y is not None and d.chance(0.5):
        key = f"random.fold_in({key}, {y[0]}.astype('uint32'))"
    shape = tuple(d.number(1, 12) for _ in range(d.number(0, 3)))
    x = d.pick(NON_EMPTY)
    used(
        d,
        d.one(
            [
                f"random.normal({key}, {shape})",
                f"random.uniform({key}, {shape}, 'bfloat16')",
                f"random.randint({key}, {shape}, -5, 9)",
                f"random.bernoulli({key}, 0.4, {shape})",
                f"random.bits({key}, {shape}, 'uint8')",
                f"random.uniform({key}, {shape}, minval=-1.0)",
                f"random.permutation({key}, {x[0]})"
                if x is not None
                else f"random.permutation({key}, 9)",
                f"random.normal(random.split({key}, 3)[1], {shape})",
                f"random.exponential({key}, {shape})",
                f"random.categorical({key}, jnp.zeros({(*shape, 4)}))",
            ]
        ),
    )


@wide(1)
def chosen(d: Drawer) -> None:
    """Choices among several."""
    x = d.pick(lambda v: REAL(v) and v.dtype.kind != "b")
    if x is None:
        return
    name, v = x
    y = d.mate(x)
    if y is None:
        return
    used(
        d,
        d.one(
            [
                f"jnp.select([{name} > 1, {name} > 0], [{name}, {y}], 3)",
                f"lax.select_n({name} > 0, {name}, {name} * 2)",
                f"lax.clamp(jnp.asarray(-1 if {v.dtype.kind != 'u'} else 1).astype({name}.dtype), {name}, jnp.asarray(3).astype({name}.dtype))",
                f"jnp.piecewise({name} * 1.0, [{name} > 1], [1.0, 2.0])",
                f"jnp.interp({name} * 1.0, jnp.array([-1.0, 0.0, 1.5]), jnp.array([0.0, 2.0, 1.0]))",
                f"jnp.isin({name}, jnp.array([0, 1, 5]))",
                f"nn.one_hot(jnp.argmax({name}, axis=0), 5)",
                f"jnp.take_along_axis({name}, jnp.argmax({name}, axis=0, keepdims=True), axis=0)",
                f"jnp.where({name} == jnp.max({name}), 0, {name})",
            ]
        ),
    )
