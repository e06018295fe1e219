"""Statements of the edge generator about reductions: of several axes, several of them in one kernel, what is
computed from them and reduced again, multiplied operands, positions of extremes, variances; and arrays of dtypes
of few bits that are moved, chosen, carried.
"""

from __future__ import annotations

from fuzzing.aimed_kernels import disguised
from fuzzing.aimed_loops import size
from fuzzing.aimed_moves import move
from fuzzing.drawer import Drawer
from fuzzing.edge_kernels import exactly
from fuzzing.edge_loops import edge, numbers

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 255, 257, 600, 1025, 4099)
DTYPES = ("int32", "int32", "float32", "float32", "int8", "uint8", "int16", "uint32", "bool", "bfloat16", "float16", "complex64")


@edge(4)
@exactly
def reduced(d: Drawer) -> None:
    """Reductions along some axes, computed with and reduced along the same or other axes."""
    rank = d.one([1, 2, 2, 3, 3, 4, 5])
    most = min(d.largest, 150_000)
    while True:
        shape = tuple(d.one(SIZES if rank < 4 else SIZES[:14]) for _ in range(rank))
        if size(shape) <= most:
            break
    dtype = d.one(DTYPES)
    f = d.fresh("f")
    axes = tuple(sorted(set(d.rng.permutation(rank)[: d.number(1, rank + 1)].tolist())))
    lines, full, part = [], ["x", "y"], []
    few = 2 if dtype in ("bfloat16", "float16") else 5
    kind = "c" if dtype == "complex64" else "b" if dtype == "bool" else "f" if "float" in dtype else "i"
    whole = "int32" if kind in "ib" else "float32" if kind == "f" else "complex64"
    for k in range(d.number(2, 9)):
        v, w = d.one(full), d.one(full)
        if d.chance(0.5):
            over = axes if d.chance(0.75) else (d.number(0, rank),)
            ops = [f"jnp.sum({v}, {over}, keepdims=True, dtype='{whole}')", f"jnp.sum(({v}) * ({w}), {over}, keepdims=True)"]
            if kind != "c":
                ops += [f"jnp.max({v}, {over}, keepdims=True)", f"jnp.min({v}, {over}, keepdims=True)", f"jnp.any({v} > 2, {over}, keepdims=True)",
                        f"jnp.argmax({v}, {over[0]}, keepdims=True)", f"jnp.argmin({v}, {over[-1]}, keepdims=True).astype('uint8')",
                        f"jnp.sum({v} > {w}, {over}, keepdims=True)", f"jnp.count_nonzero({v}, {over}, keepdims=True)",
                        f"jnp.max(jnp.where({v} > {w}, {v}, {w}), {over}, keepdims=True)"]  # fmt: skip
            if kind == "i":
                ops += [f"jnp.prod({v} | 1, {over}, keepdims=True)", f"jnp.expand_dims(lax.reduce_xor({v}.astype('int32'), {over}), {over})",
                        f"jnp.expand_dims(lax.reduce_or({v}.astype('int32'), {over}), {over})",
                        f"jnp.expand_dims(lax.reduce(({v}, {w}), ({v}.dtype.type(0), {w}.dtype.type(0)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), {over})[{d.number(0, 2)}], {over})"]  # fmt: skip
            if kind == "f" and k > 2:
                ops += [f"jnp.var({v}, {over}, keepdims=True)", f"jnp.mean({v}, {over}, keepdims=True)"]
            lines.append(f"    r{k} = {d.one(ops)}")
            part.append(f"r{k}")
        else:
            texts = [f"{v} + {w}", f"{v} * 2", f"jnp.where({v} == {w}, 1, {v})"] + ([f"jnp.maximum({v}, {w})", f"{v} % 5 - {w} % 3"] if kind in "if" else [])
            if kind == "b":
                texts = [f"{v} ^ {w}", f"{v} & {w}", f"{v} | {w}"]
            if part:
                r = d.one(part)
                texts += [f"{v} + {r} % 7", f"{v} - {r}.astype({v}.dtype)", f"jnp.where({v} >= {r}, {v}, 0)", f"({v} == {r}).astype('int32')"] if kind not in "c" else [f"{v} + {r}"]
            axis = d.number(0, rank)
            texts += [f"jnp.flip({v}, {axis})", f"jnp.roll({v}, 1, {axis})"]
            lines.append(f"    f{k} = {d.one(texts)}")
            full.append(f"f{k}")
    order = tuple(d.rng.permutation(rank).tolist())
    ends = [d.one(full[2:] or full), *[r for r in part if d.chance(0.6)]]
    ends += [d.one([f"jnp.transpose({ends[0]}, {order})", f"jnp.squeeze({part[-1]}, {axes})" if part else ends[0], f"{ends[0]}.astype('float32')" if kind != "c" else ends[0],
                    f"jnp.sum({ends[0]}, {axes})", f"jnp.sum({ends[0]})"])]  # fmt: skip
    definition = "\n".join([f"def {f}(x, y):", *lines, f"    return {', '.join(dict.fromkeys(ends))},"])
    x, y = disguised(d, shape, dtype, few), disguised(d, d.one([shape, shape, tuple(n if d.chance(0.6) else 1 for n in shape)]), dtype, few)
    y = f"jnp.broadcast_to({y}, {shape})"
    text = f"{f}({x}, {y})"
    how = d.number(0, 8)
    if how == 0:
        text = f"vmap({f}, in_axes={d.number(0, rank + 1)})(*[jnp.stack([v, v], {d.number(0, rank + 1)}) for v in ({x}, {y})])"
    elif how == 1:
        text = f"lax.map(lambda s: {f}(*s), (jnp.stack([{x}, jnp.flip({x})]), jnp.stack([{y}, {y}])))"
    elif how == 2:
        text = f"{f}(*lax.fori_loop(0, 2, lambda i, s: (s[1], jnp.flip(s[0])), ({x}, {y})))"
    d.attempt(text, definition)


FEW_BITS = ("int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e4m3fnuz",
            "float8_e3m4", "float4_e2m1fn", "float8_e8m0fnu", "float8_e4m3")  # fmt: skip


@edge(2)
def few_bits(d: Drawer) -> None:
    """Arrays of few bits as values of their own: moved, written to, compared, sorted, carried."""
    dtype = d.one(FEW_BITS)
    shape = tuple(d.one([1, 2, 3, 5, 8, 16, 17, 33, 65]) for _ in range(d.number(1, 4)))
    if size(shape) > 4000:
        return
    signed = dtype not in ("uint4", "uint2", "float8_e8m0fnu")
    low, high = {"int2": (-2, 2), "uint2": (0, 4), "uint4": (0, 16), "int4": (-8, 8), "float8_e8m0fnu": (1, 3)}.get(dtype, (-2 if signed else 0, 4))
    whole = f"((jnp.arange({size(shape)}, dtype='int32') * {d.one([1, 3, 7])} % {high - low}) + {low}).reshape({shape})"
    text = f"{whole}.astype('{dtype}')" if "int" in dtype else f"{whole}.astype('float32').astype('{dtype}')"
    if not d.attempt(text):
        return
    made = [d.pool[-1]]
    wide = "int8" if "int" in dtype else "float32"
    for _ in range(d.number(2, 10)):
        x, v = d.one(made[-3:])
        axis = d.number(0, max(v.ndim, 1))
        same = [n for n, w in made if w.shape == v.shape]
        y = d.one(same)
        texts = [move(d, x, v.shape)] * 3 + [f"jnp.where({x} == {y}, {x}, {y})", f"jnp.where({x} > {y}, {y}, {x})"]
        if v.ndim:
            n = v.shape[axis]
            at = ":, " * axis
            texts += [f"{x}.at[{at}0].set({y}[{at}{n - 1}])", f"jnp.sort({x}, axis={axis})", f"lax.fori_loop(0, 3, lambda i, s: jnp.roll(s, i, {axis}), {x})",
                      f"lax.scan(lambda s, r: (jnp.where(r > s, r, s), s), {x}[0], {x})[1]", f"lax.dynamic_slice_in_dim({x}, {d.number(0, n)}, {d.number(1, n + 1)}, {axis})",
                      f"jnp.take({x}, jnp.arange({n})[::-1], axis={axis})", f"vmap(lambda r: r[::-1] if r.ndim else r)({x})", f"lax.cond({x}.ravel()[0] > 0, lambda s: s, lambda s: jnp.flip(s), {x})",
                      f"jnp.argmax({x}.astype('{wide}'), axis={axis})", f"{x}.astype('{wide}').sum({axis})", f"{x}.astype('float32').astype('{dtype}')"]  # fmt: skip
        if "int" in dtype:
            texts += [f"{x} + {y}", f"{x} * {y}", f"{x} - {y}", f"{x} & {y}", f"{x} ^ {y}", f"-{x}" if signed else f"~{x}", f"jnp.maximum({x}, {y})", f"{x} >> 1", f"{x} // 2" if dtype.endswith("4") else x,
                      f"jnp.abs({x})", f"{x} < {y}", f"{x}.astype('int32') * 3", f"jnp.clip({x}, 0, 1)", f"{x}.astype('bfloat16')", f"jnp.sum({x}.astype('int32'))"]  # fmt: skip
        else:
            texts += [f"({x}.astype('float32') * {y}.astype('float32')).astype('{dtype}')", f"{x}.astype('float16') + {y}.astype('float16')", f"-{x}" if signed else x, f"{x} + {y}", f"{x} * {y}",
                      f"jnp.maximum({x}, {y})", f"{x} <= {y}", f"lax.bitcast_convert_type({x}, 'uint8')" if "8" in dtype else x, f"{x}.astype('bfloat16')", f"jnp.abs({x})"]  # fmt: skip
        if d.attempt(d.one(texts)):
            name, w = d.pool[-1]
            if w.dtype == v.dtype and w.size <= 8000 and w.size:
                made.append((name, w))


@edge(1)
def many_results(d: Drawer) -> None:
    """Functions of many results, of which some are one value, an operand, a part of another, a constant."""
    f = d.fresh("f")
    n = d.one([1, 3, 8, 17, 64])
    dtype = d.one(["int32", "float32", "int8", "uint8", "bool"])
    lines, made = [], ["x", "y"]
    for k in range(d.number(2, 30)):
        v, w = d.one(made), d.one(made)
        lines.append(f"    v{k} = " + d.one([v, f"{v}.reshape({n}, 1)[:, 0]", f"jnp.flip({v})", f"jnp.where({v} == {w}, {v}, {w})", f"{v} ^ {w}" if dtype not in ("float32",) else f"{v} - {w}",
                     f"jnp.concatenate([{v}, {w}])[:{n}]", f"{v}.at[0].set({w}[-1])", f"jnp.broadcast_to({v}[0], ({n},))", f"lax.optimization_barrier({v})", f"jit(lambda a, b: (b, a))({v}, {w})[0]",
                     f"lax.cond({v}[0] == {w}[0], lambda: {v}, lambda: {w})", f"lax.fori_loop(0, 2, lambda i, s: (s[1], s[0]), ({v}, {w}))[1]", f"jnp.zeros_like({v})",
                     f"lax.scan(lambda s, r: (r, s), {v}[0], {w})[1]", f"jnp.stack([{v}, {w}])[{d.number(0, 2)}]", f"jnp.arange({n}).astype('{dtype}')", f"lax.while_loop(lambda s: s[1] < 2, lambda s: (s[0], s[1] + 1), ({v}, 0))[0]"]))
        made.append(f"v{k}")
    ends = [d.one(made) for _ in range(d.number(1, 12))] + [made[-1], made[-1]]
    d.attempt(f"{f}({numbers(d, (n,), dtype)}, {numbers(d, (n,), dtype)})", "\n".join([f"def {f}(x, y):", *lines, f"    return {', '.join(ends)},"]))
