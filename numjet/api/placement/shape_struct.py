"""ShapeDtypeStruct: the shape and dtype of an array that need not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numjet.api.placement.devices import Sharding
from numjet.api.placement.layout import AutoLayout, Format
from numjet.api.placement.mesh import context_mesh
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import canonical, native


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist; stands for one in `eval_shape` and
    `jit(f).lower`.

    shape: a sequence of integers; dtype: anything that names one (an extended dtype such as that of
    keys too), whose width it keeps: functions see 32 bits unless `enable_x64`; sharding: a layout
    over devices, a Format, or None; weak_type: as of a Python number. manual_axis_type and is_ref
    are kept for programs that ask. Compares by value and is hashable. Raises ValueError for None as
    the dtype.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> spec = nj.ShapeDtypeStruct((2, 3), jnp.int8)
    >>> print(spec.shape, spec.ndim, spec.size)
    (2, 3) 2 6
    """

    __slots__ = ("shape", "dtype", "weak_type", "_sharding", "manual_axis_type", "is_ref", "layout")
    _FIELDS = ("shape", "dtype", "weak_type", "sharding", "manual_axis_type", "is_ref")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ) -> None:
        if not isinstance(shape, Iterable):
            raise TypeError(
                f"{type(shape).__name__!r} object is not iterable: ShapeDtypeStruct's shape is a "
                f"sequence of integers, got {shape!r}. Write ({shape!r},) for one axis."
            )
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = tuple(shape)
        self.dtype = native(dtype)
        place = sharding.sharding if isinstance(sharding, Format) else sharding
        if not (place is None or isinstance(place, Sharding | PartitionSpec)):
            raise ValueError(
                "ShapeDtypeStruct: sharding should be an instance of `numjet.sharding.Sharding`, "
                f"a PartitionSpec or a Format. Got {place!r} of type {type(place).__name__}."
            )
        if isinstance(place, NamedSharding):
            place.check_compatible_aval(self.shape)
        self.layout = sharding.layout if isinstance(sharding, Format) else None
        if isinstance(self.layout, AutoLayout):
            raise TypeError(
                "`Layout.AUTO` cannot be used in place of a device-local layout in a "
                f"`ShapeDtypeStruct`. Got {sharding}: name the order of the axes, or None."
            )
        self.weak_type = weak_type
        self._sharding = place
        self.manual_axis_type, self.is_ref = manual_axis_type, is_ref

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise RuntimeError(
                f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects. "
                f"x.update({name}=...) makes another."
            )
        object.__setattr__(self, name, value)

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Of pickles: the fields, as numjet or as JAX wrote them."""
        fields = state[1]
        self.__init__(  # type: ignore[misc]
            fields["shape"], fields["dtype"], weak_type=fields["weak_type"],
            sharding=fields.get("sharding", fields.get("_sharding")),
            manual_axis_type=fields["manual_axis_type"], is_ref=fields["is_ref"],
        )  # fmt: skip

    @property
    def sharding(self) -> Any:
        """The layout over devices; one that was given as a PartitionSpec is over the mesh of
        `set_mesh`. Raises TypeError where there is no such mesh."""
        place = self._sharding
        if not isinstance(place, PartitionSpec):
            return place
        mesh = context_mesh()
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be "
                f"empty (got {place}). Please use `numjet.set_mesh` to set the mesh context, or "
                "give NamedSharding(mesh, spec)."
            )
        return NamedSharding(mesh, place)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """That of `x`, an array."""
        aval = getattr(x, "aval", x)
        shown = aval.sharding if getattr(aval, "placed", None) is not None else None
        manual = getattr(aval, "manual_axis_type", None)
        return cls(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False), sharding=shown,
                   manual_axis_type=manual)

    @property
    def _aval(self) -> ShapedArray:
        dtype = canonical(self.dtype)
        return ShapedArray(self.shape, dtype, self.weak_type, sharding=self.sharding,
                           manual_axis_type=self.manual_axis_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same with other fields, named as the arguments; other names change nothing."""
        fields = {name: getattr(self, name) for name in self._FIELDS if name != "sharding"}
        fields["sharding"] = self._sharding if self.layout is None else self.format
        given = changes.get("sharding")
        if self.layout is not None and given is not None and not isinstance(given, Format):
            raise ValueError(
                f"You are updating ShapeDtypeStruct with a {type(given)} when the original one had "
                f"a concrete layout {self.format}. Pass a Format, which names a layout too."
            )
        fields.update({name: x for name, x in changes.items() if name in fields})
        return type(self)(fields.pop("shape"), fields.pop("dtype"), **fields)

    @property
    def format(self) -> Format:
        """How the array lies in memory, and where."""
        return Format(self.layout, self.sharding)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self._aval.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        parts = [f"shape={self.shape}", f"dtype={self.dtype.name}"]
        if self.sharding is not None:
            parts.append(f"sharding={self.sharding}")
        if self.layout is not None:
            parts.append(f"format={self.layout}")
        if self.manual_axis_type is not None and not self.manual_axis_type.empty:
            parts.append(f"manual_axis_type={self.manual_axis_type}")
        parts += [f"{name}=True" for name in ("weak_type", "is_ref") if getattr(self, name)]
        return f"ShapeDtypeStruct({', '.join(parts)})"

    def _key(self) -> tuple:
        manual = self.manual_axis_type
        fields = (self.shape, self.dtype, self.weak_type, self._sharding, self.layout, self.is_ref)
        return (*fields, None if manual is None or manual.empty else manual)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
