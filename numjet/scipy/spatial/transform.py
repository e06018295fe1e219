"""numjet.scipy.spatial.transform: rotations in three dimensions, and interpolation between them.

A rotation is its unit quaternion (x, y, z, w). Sources: Shuster, "A survey of attitude
representations", J. Astronautical Sciences 41, 1993; Euler angles by Bernardes & Viollet,
"Quaternion to Euler angles conversion", PLoS ONE 17, 2022; the mean by Markley et al., "Averaging
quaternions", J. Guidance 30, 2007.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp, random
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.numpy.promote import inexact_dtype

# Below this middle angle (or so near to its end) the outer two turn about one axis.
_LOCKED = 1e-7


def _floats(x: Any) -> Any:
    x = jnp.asarray(x)
    return jnp.asarray(x, inexact_dtype(x.dtype))


def _product(p: Any, q: Any) -> Any:
    """Hamilton's product p q of quaternions [..., 4]."""
    a, b = p[..., :3], q[..., :3]
    v, w = p[..., 3:], q[..., 3:]
    real = v * w - (a * b).sum(-1, keepdims=True)
    return jnp.concatenate([w * a + v * b + jnp.cross(a, b), real], -1)


def _normalized(q: Any) -> Any:
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _axes(seq: str) -> tuple[list[int], bool]:
    """The numbers of the axes, and whether they are fixed in space (lower case)."""
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", seq):
        raise ValueError(
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}"
        )
    if any(a == b for a, b in zip(seq, seq[1:], strict=False)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(c) for c in seq.lower()], seq.islower()


class Rotation(NamedTuple):
    """One rotation, or a row of them: `quat`, unit quaternions [4] or [n, 4], scalar last.

    A pytree, so that rotations go through `jit`, `vmap` and derivatives.

    >>> import numjet.numpy as jnp
    >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
    >>> print(jnp.round(turn.apply(jnp.array([1.0, 0.0, 0.0])), 3))
    [0. 1. 0.]
    """

    quat: Any

    # ---------------------------------------------------------------- from other forms
    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """Rotations from quaternions.

        quat: [..., 4] of any length but 0, scalar last.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.from_quat(jnp.array([0.0, 0.0, 0.0, 2.0])).quat
        Array([0., 0., 0., 1.], dtype=float32)
        """
        return cls(_normalized(_floats(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Rotations from axes whose lengths are angles.

        rotvec: [..., 3]. degrees: the angles are in degrees.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True).magnitude().round(4)
        Array(1.5708, dtype=float32)
        """
        v = _floats(rotvec)
        v = jnp.deg2rad(v) if degrees else v
        square = (v * v).sum(-1, keepdims=True)
        small = square < 1e-6
        angle = jnp.sqrt(jnp.where(small, 1, square))
        # sin(t / 2) / t by its series near 0, where also derivatives exist.
        series = 0.5 - square / 48 + square * square / 3840
        scale = jnp.where(small, series, jnp.sin(angle / 2) / angle)
        real = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
        return cls(jnp.concatenate([v * scale, real], -1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Rotations from modified Rodrigues parameters: axes times tan(angle / 4).

        mrp: [..., 3].

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.from_mrp(jnp.array([0.0, 0.0, 1.0])).magnitude().round(4)
        Array(3.1416, dtype=float32)
        """
        v = _floats(mrp)
        square = (v * v).sum(-1, keepdims=True)
        return cls(jnp.concatenate([2 * v, 1 - square], -1) / (1 + square))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Rotations from orthogonal matrices of determinant 1.

        matrix: [..., 3, 3]; no check is made of it. Source: Shepperd, Quaternion from rotation
        matrix (1978).

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.from_matrix(jnp.eye(3)).quat
        Array([0., 0., 0., 1.], dtype=float32)
        """
        m = _floats(matrix)
        d = jnp.diagonal(m, axis1=-2, axis2=-1)
        trace = d.sum(-1)
        # The largest of the four components is never near 0: divide by that one (Shepperd 1978).
        sizes = jnp.concatenate([d, trace[..., None]], -1)
        choice = jnp.argmax(sizes, -1)
        candidates = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            parts = [None] * 4
            parts[i] = 1 - trace + 2 * m[..., i, i]
            parts[j] = m[..., j, i] + m[..., i, j]
            parts[k] = m[..., k, i] + m[..., i, k]
            parts[3] = m[..., k, j] - m[..., j, k]
            candidates.append(jnp.stack(parts, -1))
        pairs = [((i + 2) % 3, (i + 1) % 3) for i in range(3)]
        turned = [m[..., k, j] - m[..., j, k] for k, j in pairs]
        candidates.append(jnp.stack([*turned, 1 + trace], -1))
        every = jnp.stack(candidates, -2)
        index = jnp.broadcast_to(choice[..., None, None], (*choice.shape, 1, 4))
        return cls(_normalized(jnp.take_along_axis(every, index, -2)[..., 0, :]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations from angles about axes, one after the other.

        seq: up to three of "xyz", axes fixed in space, or of "XYZ", axes that turn. angles: [...,
        len(seq)], for one axis also a scalar. degrees: the angles are in degrees. Raises ValueError
        for other letters and shapes.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> jnp.abs(Rotation.from_euler("z", 180.0, degrees=True).quat).round(4)
        Array([0., 0., 1., 0.], dtype=float32)
        """
        axes, fixed = _axes(seq)
        a = _floats(angles)
        if not a.ndim and len(axes) == 1:
            a = a[None]
        if not a.ndim or a.shape[-1] != len(axes):
            raise ValueError(
                f"Rotation.from_euler: seq {seq!r} needs angles of shape (..., {len(axes)}), got "
                f"{a.shape}."
            )
        a = (jnp.deg2rad(a) if degrees else a) / 2
        total: Any = None
        for i, axis in enumerate(axes):
            sine, cosine = jnp.sin(a[..., i]), jnp.cos(a[..., i])
            zero = jnp.zeros_like(sine)
            one = jnp.stack([sine if axis == j else zero for j in range(3)] + [cosine], -1)
            if total is None:
                total = one
            else:
                total = _product(one, total) if fixed else _product(total, one)
        return cls(total)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """No rotation, or several of them.

        num: how many in a row; None for one. dtype: floating.

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.identity().quat
        Array([0., 0., 0., 1.], dtype=float32)
        """
        dtype = dtypes.canonical(dtype)
        return cls(jnp.zeros((*(() if num is None else (num,)), 4), dtype).at[..., 3].set(1))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Uniformly distributed rotations.

        random_key: a PRNG key. num: how many in a row; None for one.

        >>> import numjet as nj
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.random(nj.random.key(0), 3).quat.shape
        (3, 4)
        """
        return cls(_normalized(random.normal(random_key, (*(() if num is None else (num,)), 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Rotations in one row.

        rotations: a sequence of Rotations.

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> len(Rotation.concatenate([Rotation.identity(), Rotation.identity(2)]))
        3
        """
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    # ---------------------------------------------------------------- to other forms
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """The quaternions [..., 4], scalar last.

        canonical: of both signs the one whose last nonzero part, from w over x, y to z, is
        positive. scalar_first: w in front.

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> Rotation.identity().as_quat(scalar_first=True)
        Array([1., 0., 0., 0.], dtype=float32)
        """
        q = self._canonical() if canonical else self.quat
        return jnp.roll(q, 1, -1) if scalar_first else q

    def _canonical(self) -> Any:
        q = self.quat
        x, y, z, w = (q[..., i] for i in range(4))
        negative = w < 0
        still = w == 0
        for part in (x, y, z):
            negative |= still & (part < 0)
            still &= part == 0
        return jnp.where(negative[..., None], -q, q)

    def _upper(self) -> Any:
        """The quaternions whose w is not negative; half turns as they are."""
        return jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Axes [..., 3] whose lengths are the angles, at most π.

        degrees: the angles in degrees. Differentiable, also at the identity.

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.as_rotvec(degrees=True).round(3)
        Array([ 0.,  0., 90.], dtype=float32)
        """
        q = self._upper()
        v, w = q[..., :3], q[..., 3:]
        square = (v * v).sum(-1, keepdims=True)
        small = square < 1e-6
        size = jnp.sqrt(jnp.where(small, 1, square))
        # angle / sin(angle / 2) near 0, from arcsin's series.
        series = 2 + square / 3 + 3 * square * square / 20
        out = v * jnp.where(small, series, 2 * jnp.arctan2(size, w) / size)
        return jnp.rad2deg(out) if degrees else out

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters [..., 3] of length at most 1: axes times tan(angle / 4).

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.as_mrp().round(4)
        Array([0.    , 0.    , 0.4142], dtype=float32)
        """
        q = self._upper()
        return q[..., :3] / (1 + q[..., 3:])

    def as_matrix(self) -> Any:
        """Orthogonal matrices [..., 3, 3]: a vector turns by multiplication from the left.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> jnp.abs(turn.as_matrix()).round(4)
        Array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
        """
        q = self.quat
        v, w = q[..., :3], q[..., 3, None, None]
        x, y, z = (v[..., i] for i in range(3))
        zero = jnp.zeros_like(x)
        skew = jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*x.shape, 3, 3)
        outer = v[..., :, None] * v[..., None, :]
        square = (v * v).sum(-1)[..., None, None]
        eye = jnp.eye(3, dtype=q.dtype)
        return (w * w - square) * eye + 2 * outer + 2 * w * skew

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Angles [..., 3] about three axes.

        seq: as of `from_euler`, three letters (ValueError for others). degrees: the angles in
        degrees. Where only the sum or difference of the outer angles counts, the third is 0.
        Source: Bernardes and Viollet, Quaternion to Euler angles conversion (2022).

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> jnp.abs(turn.as_euler("xyz", degrees=True)).round(3)
        Array([ 0.,  0., 90.], dtype=float32)
        """
        axes, fixed = _axes(seq)
        if len(axes) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        i, j, k = axes if fixed else axes[::-1]
        proper = i == k
        k = 3 - i - j if proper else k
        sign = (i - j) * (j - k) * (k - i) // 2
        x, y, z = self.quat[..., i], self.quat[..., j], self.quat[..., k] * sign
        w = self.quat[..., 3]
        a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        low, high = jnp.abs(middle) < _LOCKED, jnp.abs(middle - np.pi) < _LOCKED
        outer = [half_sum - half_difference, half_sum + half_difference]
        first, third = outer if fixed else outer[::-1]
        if not proper:
            middle = middle - np.pi / 2
            if fixed:
                third = third * sign
            else:
                first = first * sign
        locked = jnp.where(low, 2 * half_sum, (-2 if fixed else 2) * half_difference)
        if not proper and not fixed:
            locked = locked * sign
        first = jnp.where(low | high, locked, first)
        third = jnp.where(low | high, 0, third)
        angles = jnp.stack([first, middle, third], -1)
        angles = jnp.where(angles < -np.pi, angles + 2 * np.pi, angles)
        angles = jnp.where(angles > np.pi, angles - 2 * np.pi, angles)
        return jnp.rad2deg(angles) if degrees else angles

    # ---------------------------------------------------------------- what rotations do
    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors, turned.

        vectors: [3] or [n, 3]; a row of rotations turns them one by one. inverse: the other way.
        Linear in the vectors, differentiable in both.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.apply(jnp.array([1.0, 0.0, 0.0])).round(4)
        Array([0., 1., 0.], dtype=float32)
        """
        m = self.as_matrix()
        m = jnp.swapaxes(m, -1, -2) if inverse else m
        return jnp.einsum("...ij,...j->...i", m, jnp.asarray(vectors))

    def inv(self) -> Rotation:
        """The inverse rotations.

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> (turn * turn.inv()).magnitude().round(4)
        Array(0., dtype=float32)
        """
        return Rotation(self.quat * jnp.asarray([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Any:
        """The angles of the rotations, in [0, π].

        >>> from numjet.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.magnitude().round(4)
        Array(1.5708, dtype=float32)
        """
        q = self.quat
        return 2 * jnp.arctan2(jnp.linalg.norm(q[..., :3], axis=-1), jnp.abs(q[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation from which the weighted sum of squared chordal distances is least.

        weights: [n], not negative; ones unless given (ValueError for another number). Source:
        Markley and others, Averaging quaternions (2007). Raises TypeError for one rotation that is
        no row, unless a weight is given.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation
        >>> row = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> jnp.rad2deg(row.mean().magnitude()).round(3)
        Array(45., dtype=float32)
        """
        q = self.quat
        w = jnp.ones(len(self), q.dtype) if weights is None else _floats(weights)
        q = jnp.atleast_2d(q)
        if w.ndim != 1 or w.shape[0] != q.shape[0]:
            raise ValueError(
                f"Rotation.mean: expected {q.shape[0]} weights, got an array of shape {w.shape}."
            )
        return Rotation(jnp.linalg.eigh((q.T * w) @ q)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, no row of them."""
        return bool(self.quat.ndim == 1)

    def __len__(self) -> int:
        """How many there are in a row."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self.quat.shape[0])

    def __getitem__(self, indexer: Any) -> Any:
        """Some of a row."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __mul__(self, other: Any) -> Any:
        """First `other`, then this one."""
        return Rotation(_product(*jnp.broadcast_arrays(self.quat, other.quat)))


class Slerp(NamedTuple):
    """Interpolation between rotations at constant angular velocities; `Slerp.init` makes one.

    >>> import numjet.numpy as jnp
    >>> ends = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> between = Slerp.init(jnp.array([0.0, 1.0]), ends)
    >>> print(between(0.5).magnitude().round(3))
    0.785
    """

    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """An interpolation from rotations at given times.

        times: [n], rising, n >= 2. rotations: a row of as many. Calling it with a scalar or [m]
        gives the rotations at these times. Raises TypeError for what is no Rotation, ValueError for
        other numbers. Source: Shoemake, Animating rotation with quaternion curves (1985).

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.spatial.transform import Rotation, Slerp
        >>> ends = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> between = Slerp.init(jnp.array([0.0, 1.0]), ends)
        >>> between(0.5).magnitude().round(3)
        Array(0.785, dtype=float32)
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"`rotations` must be a Rotation, got {type(rotations).__name__}.")
        if rotations.single or len(rotations) < 2:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = _floats(times)
        if times.ndim != 1:
            raise ValueError(
                "Expected times to be specified in a 1 dimensional array, got "
                f"{times.ndim} dimensions."
            )
        if times.shape[0] != len(rotations):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and {times.shape[0]} timestamps."
            )
        start, end = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), start, (start.inv() * end).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at `times`, a scalar or [m]; beyond the ends, the outer ones go on."""
        times = _floats(times)
        i = jnp.searchsorted(self.times, times) - 1
        i = jnp.clip(i, 0, self.times.shape[0] - 2)
        part = (times - self.times[i]) / self.timedelta[i]
        turn = Rotation.from_rotvec(self.rotvecs[i] * part[..., None])
        return Rotation(_product(self.rotations.quat[i], turn.quat))


__all__ = ["Rotation", "Slerp"]


def __dir__() -> list[str]:
    return [*__all__]
