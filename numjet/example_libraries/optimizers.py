"""numjet.example_libraries.optimizers: optimizers as three functions.

`sgd(0.1)` and the others return `Optimizer(init_fun, update_fun, get_params)`:
`state = init_fun(params)`, `state = update_fun(step, gradients, state)`, `get_params(state)`.
`params` is any pytree. A step size is a number or a function of the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from numjet import numpy as jnp, tree_util
from numjet.base.record import NamedTuple

# Names for annotations.
Params: TypeAlias = Any
State: TypeAlias = Any
Updates: TypeAlias = Any
Step: TypeAlias = int
InitFn = Callable[[Params], State]
UpdateFn = Callable[[Step, Updates, State], State]
ParamsFn = Callable[[State], Params]
Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """What an optimizer is: start, one step, and the parameters of a state."""

    init_fn: Callable
    update_fn: Callable
    params_fn: Callable


class OptimizerState(NamedTuple):
    """The states of all leaves: their parts, the structure of the parameters, and of each state."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda static, children: OptimizerState(children[0], *static),
)


def optimizer(opt_maker: Callable) -> Callable[..., Optimizer]:
    """Make an optimizer of pytrees from one of single arrays; a decorator.

    opt_maker(...) returns init(x0) -> state, update(step, gradient, state) -> state and
    get_params(state) -> x. Result: a function of the same arguments that gives an Optimizer. Raises
    TypeError where gradients have another structure than parameters, or an updated state than
    the state.

    >>> from numjet.example_libraries import optimizers
    >>> @optimizers.optimizer
    ... def descent(rate):
    ...     return (lambda x: x), (lambda i, g, x: x - rate * g), (lambda x: x)
    >>> init, update, params = descent(0.5)
    >>> params(update(0, {"w": 1.0}, init({"w": 2.0})))
    {'w': 1.5}
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def pack(states: list, structure: Any) -> OptimizerState:
            flat = [tree_util.tree_flatten(state) for state in states]
            return OptimizerState(
                tuple([leaves for leaves, _ in flat]), structure, tuple([d for _, d in flat])
            )

        def unpack(state: OptimizerState) -> list:
            return [
                tree_util.tree_unflatten(d, leaves)
                for d, leaves in zip(state.subtree_defs, state.packed_state, strict=True)
            ]

        def init_all(params: Any) -> OptimizerState:
            leaves, structure = tree_util.tree_flatten(params)
            return pack([init(x) for x in leaves], structure)

        def update_all(step: Any, gradients: Any, state: OptimizerState) -> OptimizerState:
            leaves, structure = tree_util.tree_flatten(gradients)
            if structure != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    "parameter tree structure with which it was initialized: parameter tree "
                    f"{state.tree_def} and grad tree {structure}."
                )
            states = [update(step, g, s) for g, s in zip(leaves, unpack(state), strict=True)]
            result = pack(states, structure)
            for given, made in zip(state.subtree_defs, result.subtree_defs, strict=True):
                if made != given:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match "
                        f"its input structure: input {given} and output {made}."
                    )
            return result

        def params_of(state: OptimizerState) -> Any:
            return tree_util.tree_unflatten(state.tree_def, [get_params(s) for s in unpack(state)])

        return Optimizer(init_all, update_all, params_of)

    return make


def constant(step_size: Any) -> Schedule:
    """The same step size at every step.

    step_size: a number. Result: a schedule, a function of the step.

    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.constant(0.5)(3))
    0.5
    """
    return lambda step: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size · decay_rate^(step / decay_steps).

    step_size, decay_steps, decay_rate: numbers. Result: a schedule, a function of the step.

    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.exponential_decay(1.0, 2, 0.5)(2))
    0.5
    """
    return lambda step: step_size * decay_rate ** (step / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """step_size / (1 + decay_rate · step / decay_steps).

    step_size, decay_steps, decay_rate: numbers. staircase: in whole steps of decay. Result: a
    schedule, a function of the step.

    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.inverse_time_decay(1.0, 2, 1.0)(2))
    0.5
    """

    def schedule(step: Any) -> Any:
        ratio = step / decay_steps
        return step_size / (1 + decay_rate * (jnp.floor(ratio) if staircase else ratio))

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """From step_size to final_step_size within decay_steps, as (1 - step / decay_steps)^power.

    step_size, decay_steps, final_step_size, power: numbers; afterwards it stays. Result: a
    schedule, a function of the step.

    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.polynomial_decay(1.0, 4, 0.0)(2))
    0.5
    """

    def schedule(step: Any) -> Any:
        left = 1 - jnp.minimum(step, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] where k of `boundaries` are below the step.

    boundaries: rising steps. values: one more than boundaries (ValueError). Result: a schedule, a
    function of the step.

    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.piecewise_constant([2], [1.0, 0.5])(3))
    0.5
    """
    edges, levels = jnp.asarray(boundaries), jnp.asarray(values)
    if not edges.ndim == levels.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != levels.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda step: levels[jnp.sum(step > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is, a number as `constant`.

    scalar_or_schedule: one of both. Raises TypeError for anything else.

    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.make_schedule(0.5)(3))
    0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


@optimizer
def sgd(step_size: Any) -> tuple:
    """Gradient descent: x ← x - step_size · gradient.

    step_size: a number, or a function of the step. Result: an Optimizer (init_fn, update_fn,
    params_fn).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.5
    """
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> tuple:
    """Gradient descent with momentum: velocity ← mass · velocity + gradient.

    step_size: a number, or a function of the step. mass: a number in [0, 1). Result: an Optimizer
    (init_fn, update_fn, params_fn).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.momentum(0.5, 0.9)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: float) -> tuple:
    """Nesterov's momentum: the step is along mass · velocity + gradient.

    step_size: a number, or a function of the step. mass: a number in [0, 1). Result: an Optimizer
    (init_fn, update_fn, params_fn).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.nesterov(0.5, 0.9)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.05
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> tuple:
    """Adagrad with momentum: steps divided by the root of the sum of squares.

    step_size: a number, or a function of the step. momentum: a number in [0, 1). Result: an
    Optimizer (init_fn, update_fn, params_fn). Source: Duchi, Hazan and Singer, Adaptive subgradient
    methods (2011).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.adagrad(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.95
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, squares, mean = state
        squares = squares + g * g
        scale = jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
        mean = (1.0 - momentum) * (g * scale) + momentum * mean
        return x - rate(i) * mean, squares, mean

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> tuple:
    """RMSProp: steps divided by the root of a running mean of squares.

    step_size: a number, or a function of the step. gamma: how much of the mean stays at each step.
    eps: is added to the mean. Result: an Optimizer (init_fn, update_fn, params_fn). Source:
    Tieleman and Hinton, lecture 6.5 of a course (2012).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.rmsprop(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    0.419
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, mean = state
        mean = mean * gamma + g * g * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> tuple:
    """RMSProp with momentum.

    step_size: a number, or a function of the step. gamma: how much of the mean of squares stays at
    each step. eps: is added to it. momentum: a number in [0, 1). Result: an Optimizer (init_fn,
    update_fn, params_fn).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.rmsprop_momentum(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    0.419
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, mean, velocity = state
        mean = mean * gamma + g * g * (1.0 - gamma)
        velocity = momentum * velocity + rate(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """Adam: running means of gradients and of their squares, corrected at the start.

    step_size: a number, or a function of the step. b1, b2: how much of both means stays at each
    step. eps: is added to the root. Result: an Optimizer (init_fn, update_fn, params_fn). Source:
    Kingma and Ba, Adam: a method for stochastic optimization (2015).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.adam(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, first, second = state
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * (g * g) + b2 * second
        one = first / (1 - jnp.asarray(b1, first.dtype) ** (i + 1))
        two = second / (1 - jnp.asarray(b2, first.dtype) ** (i + 1))
        return x - rate(i) * one / (jnp.sqrt(two) + eps), first, second

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """Adam with the largest absolute value, decaying, instead of squares.

    step_size: a number, or a function of the step. b1, b2: how much of both stays at each step.
    eps: is added to the divisor. Result: an Optimizer (init_fn, update_fn, params_fn). Source:
    Kingma and Ba, Adam: a method for stochastic optimization (2015).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.adamax(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, first, largest = state
        first = (1 - b1) * g + b1 * first
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        scale = rate(i) / (1 - jnp.asarray(b1, first.dtype) ** (i + 1))
        return x - scale * first / (largest + eps), first, largest

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> tuple:
    """SM3-II with momentum: one accumulator for each index of each axis instead of one for each
    element.

    step_size: a number, or a function of the step. momentum: a number in [0, 1). Result: an
    Optimizer (init_fn, update_fn, params_fn). Source: Anil, Gupta, Koren and Singer,
    Memory-efficient adaptive optimization (2019).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> init, update, params = optimizers.sm3(0.5)
    >>> print(jnp.round(params(update(0, 1.0, init(2.0))), 3))
    1.95
    """
    rate = make_schedule(step_size)

    def init(x: Any) -> tuple:
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape]

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, mean, covers = state
        covered = [
            jnp.expand_dims(cover, [d for d in range(x.ndim) if d != axis])
            for axis, cover in enumerate(covers)
        ]
        least = functools.reduce(jnp.minimum, covered, jnp.inf) if covered else jnp.zeros_like(x)
        squares = least + g * g
        scale = jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
        mean = (1.0 - momentum) * (g * scale) + momentum * mean
        others = [tuple([d for d in range(x.ndim) if d != axis]) for axis in range(x.ndim)]
        covers = [jnp.max(squares, axes) for axes in others]
        return x - rate(i) * mean, mean, covers

    return init, update, lambda state: state[0]


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of all leaves of a pytree together.

    tree: arrays and numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> print(optimizers.l2_norm([3.0, jnp.array([4.0])]))
    5.0
    """
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down to a norm where theirs is larger.

    grad_tree: a pytree of arrays. max_norm: a positive number, of all leaves together. Result:
    grad_tree's structure.

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import optimizers
    >>> optimizers.clip_grads([jnp.array([3.0, 4.0])], 1.0)
    [Array([0.6, 0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)),
                              grad_tree)  # fmt: skip


class JoinPoint:
    """Marks where the state of one leaf begins in an unpacked state."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state of an optimizer as a pytree like the parameters, for saving.

    opt_state: an OptimizerState. Result: a pytree with a `JoinPoint` for each leaf of the
    parameters.

    >>> from numjet.example_libraries import optimizers
    >>> state = optimizers.sgd(0.5).init_fn({"w": 2.0})
    >>> marked = optimizers.unpack_optimizer_state(state)
    >>> list(marked)
    ['w']
    """
    if not isinstance(opt_state, OptimizerState):
        raise TypeError(f"unpack_optimizer_state: expected an OptimizerState, got {opt_state!r}.")
    states = [
        JoinPoint(tree_util.tree_unflatten(d, leaves))
        for d, leaves in zip(opt_state.subtree_defs, opt_state.packed_state, strict=True)
    ]
    return tree_util.tree_unflatten(opt_state.tree_def, states)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state of an optimizer from what `unpack_optimizer_state` made of it.

    marked_pytree: a pytree with a `JoinPoint` for each leaf of the parameters. Result: an
    OptimizerState.

    >>> from numjet.example_libraries import optimizers
    >>> state = optimizers.sgd(0.5).init_fn({"w": 2.0})
    >>> marked = optimizers.unpack_optimizer_state(state)
    >>> optimizers.sgd(0.5).params_fn(optimizers.pack_optimizer_state(marked))
    {'w': 2.0}
    """
    points, structure = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError("pack_optimizer_state: every leaf must be a JoinPoint.")
    flat = [tree_util.tree_flatten(point.subtree) for point in points]
    return OptimizerState(
        tuple([leaves for leaves, _ in flat]), structure, tuple([d for _, d in flat])
    )


__all__ = [
    "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "Params", "ParamsFn", "Schedule", "State",
    "Step", "UpdateFn", "Updates", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov",
    "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
