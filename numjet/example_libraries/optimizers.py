"""numjet.example_libraries.optimizers: optimizers as three functions.

`sgd(0.1)` and the others return `Optimizer(init_fun, update_fun, get_params)`:
`state = init_fun(params)`, `state = update_fun(step, gradients, state)`, `get_params(state)`.
`params` is any pytree. A step size is a number or a function of the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from numjet import numpy as jnp, tree_util

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


class OptimizerState:
    """The states of all leaves: their parts, the structure of the parameters, and of each state."""

    def __init__(self, packed_state: Any, tree_def: Any, subtree_defs: Any) -> None:
        self.packed_state, self.tree_def, self.subtree_defs = packed_state, tree_def, subtree_defs

    def __iter__(self) -> Any:
        return iter((self.packed_state, self.tree_def, self.subtree_defs))


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda static, children: OptimizerState(children[0], *static),
)


def optimizer(opt_maker: Callable) -> Callable[..., Optimizer]:
    """Make an optimizer of pytrees from one of single arrays.

    `opt_maker(...)` returns init(x0) -> state, update(step, gradient, state) -> state and
    get_params(state) -> x. Raises TypeError where gradients have another structure than parameters.
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def pack(states: list, structure: Any) -> OptimizerState:
            flat = [tree_util.tree_flatten(state) for state in states]
            return OptimizerState(
                tuple([tuple(leaves) for leaves, _ in flat]), structure, tuple([d for _, d in flat])
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
            return pack(states, structure)

        def params_of(state: OptimizerState) -> Any:
            return tree_util.tree_unflatten(state.tree_def, [get_params(s) for s in unpack(state)])

        return Optimizer(init_all, update_all, params_of)

    return make


def constant(step_size: Any) -> Schedule:
    """The same step size at every step."""
    return lambda step: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size · decay_rate^(step / decay_steps)."""
    return lambda step: step_size * decay_rate ** (step / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """step_size / (1 + decay_rate · step / decay_steps), in whole steps of decay if `staircase`."""

    def schedule(step: Any) -> Any:
        ratio = step / decay_steps
        return step_size / (1 + decay_rate * (jnp.floor(ratio) if staircase else ratio))

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """From step_size to final_step_size within decay_steps, as (1 - step / decay_steps)^power."""

    def schedule(step: Any) -> Any:
        left = 1 - jnp.minimum(step, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] where k of `boundaries` are below the step. Raises ValueError unless there is one
    value more than boundaries."""
    edges, levels = jnp.asarray(boundaries), jnp.asarray(values)
    if not edges.ndim == levels.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != levels.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda step: levels[jnp.sum(step > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is, a number as `constant`. Raises TypeError for anything else."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


@optimizer
def sgd(step_size: Any) -> tuple:
    """Gradient descent."""
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> tuple:
    """Gradient descent with momentum: velocity ← mass · velocity + gradient."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: float) -> tuple:
    """Nesterov's momentum: the step is along mass · velocity + gradient."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> tuple:
    """Adagrad with momentum. Source: Duchi, Hazan & Singer 2011."""
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
    """RMSProp: steps divided by the root of a running mean of squares."""
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
    """RMSProp with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, mean, velocity = state
        mean = mean * gamma + g * g * (1.0 - gamma)
        velocity = momentum * velocity + rate(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """Adam. Source: Kingma & Ba 2015."""
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
    """Adam with the largest absolute value instead of squares. Source: Kingma & Ba 2015."""
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
    element. Source: Anil, Gupta, Koren & Singer 2019."""
    rate = make_schedule(step_size)

    def init(x: Any) -> tuple:
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape]

    def update(i: Any, g: Any, state: tuple) -> tuple:
        x, mean, covers = state
        spread = [
            jnp.expand_dims(cover, [d for d in range(x.ndim) if d != axis])
            for axis, cover in enumerate(covers)
        ]
        squares = functools.reduce(jnp.minimum, spread, jnp.inf) if spread else jnp.zeros_like(x)
        squares = squares + g * g
        scale = jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
        mean = (1.0 - momentum) * (g * scale) + momentum * mean
        others = [tuple([d for d in range(x.ndim) if d != axis]) for axis in range(x.ndim)]
        covers = [jnp.max(squares, axes) for axes in others]
        return x - rate(i) * mean, mean, covers

    return init, update, lambda state: state[0]


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of all leaves together."""
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down to the norm `max_norm` where theirs is larger."""
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
    """The state as a pytree like the parameters, with a `JoinPoint` for each leaf, for saving."""
    if not isinstance(opt_state, OptimizerState):
        raise TypeError(f"unpack_optimizer_state: expected an OptimizerState, got {opt_state!r}.")
    states = [
        JoinPoint(tree_util.tree_unflatten(d, leaves))
        for d, leaves in zip(opt_state.subtree_defs, opt_state.packed_state, strict=True)
    ]
    return tree_util.tree_unflatten(opt_state.tree_def, states)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`."""
    points, structure = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError("pack_optimizer_state: every leaf must be a JoinPoint.")
    flat = [tree_util.tree_flatten(point.subtree) for point in points]
    return OptimizerState(
        tuple([tuple(leaves) for leaves, _ in flat]), structure, tuple([d for _, d in flat])
    )
