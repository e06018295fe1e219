"""The rules of the primitives, by families: what of an operation may be cut over devices.

`rule_of(primitive, avals, out_avals, params)` gives a `rules.Rule`, or None: then operands are
gathered and the result is computed everywhere. A primitive's own record comes first (`shard`), then
the table here; elementwise ones need no entry. What would break it: a rule for an operation whose
parts do not compute what the whole does; tests/partition compares each with the whole.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.primitive import Primitive
from numjet.partition.rules import Factors, Rule

Avals = Sequence[ShapedArray]
Family = Callable[[Avals, Avals, dict], "Rule | None"]


def rule_of(
    primitive: Primitive, avals: Avals, outs: Avals, params: dict, passed: bool = False
) -> Rule | None:
    """How an equation may be cut, or None. passed: how XLA's partitioner hands layouts on, which
    lets parts read beyond their ends."""
    family = primitive.shard or _FAMILIES.get(primitive.name)
    if passed and primitive.name in _PASSED:
        family = _PASSED[primitive.name]
    if family is None and primitive.elementwise:
        family = elementwise
    return None if family is None else family(avals, outs, params)


def elementwise(avals: Avals, outs: Avals, params: dict) -> Rule | None:
    """The same axes everywhere; operands without axes go with each element."""
    f = Factors()
    dims = f.of(outs[0].shape)
    ins: list[list[tuple[int, ...]]] = []
    for a in avals:
        if a.ndim == 0:
            ins.append([])
        elif a.ndim == len(dims):
            ins.append([d if n > 1 else () for d, n in zip(dims, a.shape, strict=True)])
        else:
            return None
    return Rule(ins, [dims for _ in outs], f.sizes)


def _each(avals: Avals, outs: Avals, params: dict) -> Rule:
    """Several operands that pass side by side."""
    f = Factors()
    dims = [f.of(a.shape) for a in avals]
    return Rule(dims, dims, f.sizes)


def _seen(avals: Avals, outs: Avals, params: dict) -> Rule:
    """An operand of which nothing is computed."""
    rule = _each(avals, outs, params)
    rule.outs = []
    return rule


def _broadcast(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = f.of(outs[0].shape)
    places = params["broadcast_dimensions"]
    ins = [dims[p] if n > 1 else () for p, n in zip(places, avals[0].shape, strict=True)]
    return Rule([ins], [dims], f.sizes, local=lambda p, ins, outs: {**p, "shape": outs[0]})


def _transpose(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = f.of(avals[0].shape)
    return Rule([dims], [[dims[i] for i in params["permutation"]]], f.sizes)


def _reduction(kind: str | None) -> Family:
    def family(avals: Avals, outs: Avals, params: dict) -> Rule:
        f = Factors()
        dims = f.of(avals[0].shape)
        axes = set(params["axes"])
        gone = {n for i in axes for n in dims[i]}
        left = [d for i, d in enumerate(dims) if i not in axes]
        how = {n: kind for n in gone} if kind else {}
        return Rule([dims], [left], f.sizes, whole=set() if kind else gone, reduced=how)

    return family


def _reshape(avals: Avals, outs: Avals, params: dict) -> Rule:
    """Axes that split into others, or join: both run over the common factors."""
    f = Factors()
    before, after = list(avals[0].shape), list(outs[0].shape)
    ins: list[tuple[int, ...]] = [() for _ in before]
    news: list[tuple[int, ...]] = [() for _ in after]
    if avals[0].size == 0:
        return Rule([ins], [news], f.sizes, local=lambda p, i, o: {**p, "new_sizes": o[0]})
    i = j = 0
    left, right = 1, 1  # what of the axes at hand is not given to a factor yet
    while True:
        while left == 1 and i < len(before):
            left, i = before[i], i + 1
        while right == 1 and j < len(after):
            right, j = after[j], j + 1
        if left == 1 or right == 1:
            break
        small, large = min(left, right), max(left, right)
        if large % small:
            # No common factor in order: these axes stay whole until their products meet again.
            a, b = left, right
            while a != b:
                if a < b:
                    a, i = a * before[i], i + 1
                else:
                    b, j = b * after[j], j + 1
            left = right = 1
            continue
        # The major part of the longer axis; its minor part is for the axes behind.
        factor = f.new(small)
        ins[i - 1] += factor
        news[j - 1] += factor
        left //= small
        right //= small
    return Rule([ins], [news], f.sizes, local=lambda p, i, o: {**p, "new_sizes": o[0]})


def _squeeze(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = f.of(avals[0].shape)
    gone = set(params["dimensions"])
    return Rule([dims], [[d for i, d in enumerate(dims) if i not in gone]], f.sizes)


def _first_member(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = f.of(avals[0].shape)
    axis = params["axis"]
    return Rule([dims], [[d for i, d in enumerate(dims) if i != axis]], f.sizes, set(dims[axis]))


def _along(*names: str) -> Family:
    """Axes named by a param are whole, the others pass; for all operands and results alike."""

    def family(avals: Avals, outs: Avals, params: dict) -> Rule:
        f = Factors()
        dims = f.of(avals[0].shape)
        named = next(params[n] for n in names if n in params)
        axes = named if isinstance(named, tuple | list) else (named,)
        whole = {n for i in axes for n in dims[i % len(dims)]}
        return Rule([dims] * len(avals), [dims] * len(outs), f.sizes, whole)

    return family


def _equal_axes(avals: Avals, outs: Avals, local: Any) -> Rule:
    """One array in, one out, with as many axes: those of equal length pass, others are whole."""
    f = Factors()
    before, after = avals[0].shape, outs[0].shape
    ins, news = [], []
    for n, m in zip(before, after, strict=True):
        factor = f.new(n) if n == m else ()
        ins.append(factor)
        news.append(factor)
    others: list[list[tuple[int, ...]]] = [[() for _ in a.shape] for a in avals[1:]]
    return Rule([ins, *others], [news], f.sizes, local=local)


def _slice(avals: Avals, outs: Avals, params: dict) -> Rule:
    limits = params["limit_indices"]

    def local(p: dict, ins: list, news: list) -> dict:
        whole = zip(limits, avals[0].shape, ins[0], outs[0].shape, strict=True)
        return {**p, "limit_indices": tuple([k if n == m else x for x, n, k, m in whole])}

    # An axis that keeps its length is read from its beginning to its end.
    return _equal_axes(avals, outs, local)


def _dynamic_slice(avals: Avals, outs: Avals, params: dict) -> Rule:
    return _equal_axes(avals, outs, lambda p, ins, news: {**p, "slice_sizes": news[0]})


def _dynamic_update_slice(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims, update = [], []
    whole: set[int] = set()
    for n, m in zip(avals[0].shape, avals[1].shape, strict=True):
        factor = f.new(n)
        dims.append(factor)
        update.append(factor if n == m else ())
        if n != m:
            whole.update(factor)
    return Rule([dims, update, *[[] for _ in avals[2:]]], [dims], f.sizes, whole)


def _pad(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = [
        f.new(n) if tuple(c) == (0, 0, 0) else ()
        for n, c in zip(avals[0].shape, params["padding_config"], strict=True)
    ]
    return Rule([dims, []], [dims], f.sizes)


def _concatenate(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = [
        () if i == params["dimension"] else f.new(n) for i, n in enumerate(outs[0].shape)
    ]
    return Rule([dims] * len(avals), [dims], f.sizes)


def _iota(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    dims = [() if i == params["dimension"] else f.new(n) for i, n in enumerate(outs[0].shape)]
    return Rule([], [dims], f.sizes, local=lambda p, ins, news: {**p, "shape": news[0]})


def _bitcast(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    short = min(avals[0].ndim, outs[0].ndim)
    even = avals[0].shape == outs[0].shape
    keep = short if even or avals[0].ndim != outs[0].ndim else short - 1
    dims = f.of(avals[0].shape[:keep])
    return Rule(
        [dims + [()] * (avals[0].ndim - keep)], [dims + [()] * (outs[0].ndim - keep)], f.sizes
    )


def _dot(avals: Avals, outs: Avals, params: dict) -> Rule:
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    f = Factors()
    left = f.of(avals[0].shape)
    right = f.of(avals[1].shape)
    summed = {}
    for i, j in zip(lb, rb, strict=True):
        right[j] = left[i]
    for i, j in zip(lc, rc, strict=True):
        right[j] = left[i]
        for n in left[i]:
            summed[n] = "add"
    free = [left[i] for i in range(len(left)) if i not in (*lc, *lb)]
    free += [right[j] for j in range(len(right)) if j not in (*rc, *rb)]
    return Rule([left, right], [[left[i] for i in lb] + free], f.sizes, reduced=summed)


def _conv(avals: Avals, outs: Avals, params: dict) -> Rule:
    numbers = params["dimension_numbers"]
    lhs, rhs, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    f = Factors()
    grouped = params["feature_group_count"] != 1 or params.get("batch_group_count", 1) != 1
    batch = f.new(avals[0].shape[lhs[0]]) if params.get("batch_group_count", 1) == 1 else ()
    features = () if grouped else f.new(avals[1].shape[rhs[0]])
    inner = () if grouped else f.new(avals[0].shape[lhs[1]])
    image: list[tuple[int, ...]] = [()] * avals[0].ndim
    kernel: list[tuple[int, ...]] = [()] * avals[1].ndim
    result: list[tuple[int, ...]] = [()] * outs[0].ndim
    image[lhs[0]] = result[out[0]] = batch
    kernel[rhs[0]] = result[out[1]] = features
    image[lhs[1]] = kernel[rhs[1]] = inner
    return Rule([image, kernel], [result], f.sizes, reduced={n: "add" for n in inner})


def _leading(core: int) -> Family:
    """A batch of problems, each over the last `core` axes of the first operand."""

    def family(avals: Avals, outs: Avals, params: dict) -> Rule | None:
        n = avals[0].ndim - core
        lead = avals[0].shape[:n]
        if any(a.shape[:n] != lead for a in (*avals, *outs)):
            return None
        f = Factors()
        dims = f.of(lead)
        return Rule(
            [dims + [()] * (a.ndim - n) for a in avals],
            [dims + [()] * (a.ndim - n) for a in outs],
            f.sizes,
        )

    return family


def _fft(avals: Avals, outs: Avals, params: dict) -> Rule | None:
    return _leading(len(params["fft_lengths"]))(avals, outs, params)


def _gather(avals: Avals, outs: Avals, params: dict) -> Rule:
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    operand, indices, out = avals[0], avals[1], outs[0]
    f = Factors()
    ins: list[tuple[int, ...]] = [()] * operand.ndim
    places: list[tuple[int, ...]] = [()] * indices.ndim
    result: list[tuple[int, ...]] = [()] * out.ndim
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [i for i in range(operand.ndim) if i not in gone]
    for at, i in zip(numbers.offset_dims, window, strict=True):
        if sizes[i] == operand.shape[i] and i not in numbers.start_index_map:
            ins[i] = result[at] = f.new(sizes[i])
    rows = [i for i in range(out.ndim) if i not in numbers.offset_dims]
    for k, at in enumerate(rows):
        places[k] = result[at] = f.new(out.shape[at])
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    for i, k in pairs:
        ins[i] = places[k]

    def local(p: dict, shapes: list, news: list) -> dict:
        return {**p, "slice_sizes": tuple([min(n, s) for n, s in zip(shapes[0], sizes)])}

    return Rule([ins, places], [result], f.sizes, local=local)


def _scatter(avals: Avals, outs: Avals, params: dict) -> Rule:
    numbers = params["dimension_numbers"]
    operand, indices, updates = avals
    f = Factors()
    dims: list[tuple[int, ...]] = [()] * operand.ndim
    places: list[tuple[int, ...]] = [()] * indices.ndim
    news: list[tuple[int, ...]] = [()] * updates.ndim
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = [i for i in range(operand.ndim) if i not in gone]
    for at, i in zip(numbers.update_window_dims, window, strict=True):
        # Where an index moves so wide a window, it is out of bounds, on each device as on all.
        if updates.shape[at] == operand.shape[i]:
            dims[i] = news[at] = f.new(operand.shape[i])
    rows = [i for i in range(updates.ndim) if i not in numbers.update_window_dims]
    pairs = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    for i, k in pairs:
        dims[i] = places[k] = news[rows[k]] = f.new(operand.shape[i])
    return Rule([dims, places, news], [dims], f.sizes)


def _window(avals: Avals, outs: Avals, params: dict) -> Rule | None:
    if len(avals) != 1 or avals[0].ndim != outs[0].ndim:
        return None
    f = Factors()
    names = ("window_strides", "base_dilation", "window_dilation")
    dims: list[tuple[int, ...]] = []
    for i, n in enumerate(avals[0].shape):
        still = params["window_dimensions"][i] == 1 and tuple(params["padding"][i]) == (0, 0)
        still = still and all(params[k][i] == 1 for k in names if k in params)
        dims.append(f.new(n) if still else ())
    return Rule([dims], [dims], f.sizes)


def _in_places(avals: Avals, outs: Avals, params: dict) -> Rule | None:
    """Axes of any lengths that keep their places, of operands with as many; others are apart."""
    f = Factors()
    dims = [f.new(max(n, m)) for n, m in zip(avals[0].shape, outs[0].shape, strict=True)]
    return Rule([dims if a.ndim == len(dims) else [()] * a.ndim for a in avals], [dims], f.sizes)


def _scatter_passed(avals: Avals, outs: Avals, params: dict) -> Rule:
    """Results lie as what is written to."""
    rule = _scatter(avals, outs, params)
    for i, n in enumerate(outs[0].shape):
        if n > 1 and not rule.outs[0][i]:
            rule.ins[0][i] = rule.outs[0][i] = (len(rule.sizes),)
            rule.sizes[len(rule.sizes)] = n
    return rule


def _sort_passed(avals: Avals, outs: Avals, params: dict) -> Rule | None:
    """Without another axis that could be cut while it is sorted, the result is whole."""
    rule = _along("dimension")(avals, outs, params)
    alone = rule is not None and not set(rule.sizes) - rule.whole
    return _whole(avals, outs, params) if alone else rule


def _conv_passed(avals: Avals, outs: Avals, params: dict) -> Rule:
    rule, numbers = _conv(avals, outs, params), params["dimension_numbers"]
    for i, j in zip(numbers.lhs_spec[2:], numbers.out_spec[2:], strict=True):
        factor = len(rule.sizes)
        rule.sizes[factor] = outs[0].shape[j]
        rule.ins[0][i] = rule.outs[0][j] = (factor,)
    return rule


def _top_k(avals: Avals, outs: Avals, params: dict) -> Rule:
    f = Factors()
    axis = params.get("axis", -1) % avals[0].ndim
    dims = [() if i == axis else f.new(n) for i, n in enumerate(avals[0].shape)]
    return Rule([dims], [dims for _ in outs], f.sizes)


def _by_key(avals: Avals, outs: Avals, params: dict) -> Rule:
    """Keys, and what each of them gives behind its place."""
    f = Factors()
    dims = f.of(avals[0].shape)
    ins = [dims[: a.ndim] for a in avals]
    return Rule(ins, [dims + [()] * (o.ndim - len(dims)) for o in outs], f.sizes)


def _of_words(avals: Avals, outs: Avals, params: dict) -> Rule:
    """Keys made of words, which stand behind the places of the keys."""
    f = Factors()
    dims = f.of(outs[0].shape)
    return Rule([dims + [()] * (a.ndim - len(dims)) for a in avals], [dims], f.sizes)


def _flagged(avals: Avals, outs: Avals, params: dict) -> Rule:
    """Flags of the leading axes, and what they are of."""
    f = Factors()
    dims = f.of(outs[0].shape)
    return Rule([dims[: a.ndim] for a in avals], [dims], f.sizes)


def _whole(avals: Avals, outs: Avals, params: dict) -> Rule:
    """One element: nothing to cut, nothing to gather."""
    return Rule([[() for _ in a.shape] for a in avals], [[() for _ in a.shape] for a in outs], {})


_FAMILIES: dict[str, Family] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reduce_sum": _reduction("add"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    **dict.fromkeys(
        ("reduce_prod", "reduce_and", "reduce_or", "reduce_xor", "argmax", "argmin"),
        _reduction(None),
    ),
    "reshape": _reshape,
    "squeeze": _squeeze,
    "rev": _along("dimensions"),
    "permute_rows": _along("axis"),
    "first_member": _first_member,
    "sort": _along("dimension"),
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _along("axis")
    ),
    "top_k": _top_k,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "iota": _iota,
    "bitcast_convert_type": _bitcast,
    "optimization_barrier": _each,
    "device_put": _each,
    "shard_alike": elementwise,
    "inspect_sharding": _seen,
    "sharding_constraint": elementwise,
    "mesh_cast": elementwise,
    "sum_cast": elementwise,
    "layout_constraint": elementwise,
    "to_memory": elementwise,
    "dot_general": _dot,
    "conv_general_dilated": _conv,
    "gather": _gather,
    **dict.fromkeys(
        ("scatter-add", "scatter-sub", "scatter", "scatter-mul", "scatter-min", "scatter-max"),
        _scatter,
    ),
    "fft": _fft,
    **dict.fromkeys(
        ("cholesky", "eigh", "eig", "svd", "schur", "hessenberg", "lu", "qr", "geqrf",
         "triangular_solve", "solve"),
        _leading(2),
    ),
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _window),
    **dict.fromkeys(
        ("zeta", "zeta_grad_x", "polygamma", "igamma_grad_a", "random_gamma", "random_gamma_grad",
         "igamma", "igammac", "regularized_incomplete_beta", "betainc_grad_a", "betainc_grad_b",
         "bessel_i0e", "bessel_i1e", "mulhi", "eq_to", "le_to", "lt_to"),
        elementwise,
    ),
    **dict.fromkeys(
        ("random_bits", "random_split", "random_fold_in", "random_unwrap", "random_unwrap_words"),
        _by_key,
    ),
    **dict.fromkeys(("random_wrap", "random_wrap_words"), _of_words),
    "chosen": _flagged,
    "create_token": _whole,
    "after_all": _whole,
}

# What layouts go through where they are labels alone, beside the table before.
_PASSED: dict[str, Family] = {
    **dict.fromkeys(
        ("slice", "dynamic_slice", "pad", "concatenate", "fft", "reduce_window_sum",
         "reduce_window_max", "reduce_window_min"),
        _in_places,
    ),
    "conv_general_dilated": _conv_passed,
    "sort": _sort_passed,
    **dict.fromkeys(
        ("scatter-add", "scatter-sub", "scatter", "scatter-mul", "scatter-min", "scatter-max"),
        _scatter_passed,
    ),
}
