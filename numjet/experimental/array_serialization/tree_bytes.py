"""Structures of pytrees as bytes: FlatBuffers, by the public schema of JAX's serialization.

For `pytree_serialization`, whose folders JAX reads, and the other way round. A structure is a
table: its kind, its children, the keys of a dict, and the name and static data of nodes that users
registered. Sources: FlatBuffers' description of its binary format; the fields and their numbers as
they stand in files. What would break it: another order of fields.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from numjet.api.exports.export_bytes import stored_node, structure_of
from numjet.base import tree
from numjet.base.treedef import PyTreeDef

_KINDS = {"none": 1, "tuple": 2, "list": 3, "dict": 4}
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
# Fields of a table.
_KIND, _CHILDREN, _KEYS, _NAME, _DATA = range(5)


class _Writer:
    def __init__(self) -> None:
        self.bytes = bytearray(4)

    def _number(self, value: int) -> int:
        """Append a number of 32 bits; where it stands."""
        self.bytes += b"\0" * (-len(self.bytes) % 4)
        self.bytes += struct.pack("<I", value)
        return len(self.bytes) - 4

    def _point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.bytes, place, target - place)

    def _text(self, value: bytes, end: bytes = b"") -> int:
        place = self._number(len(value))
        self.bytes += value + end
        return place

    def _table(self, kind: int, fields: set[int]) -> dict[int, int]:
        """Append a table; where its fields stand."""
        present = sorted(fields, reverse=True)
        count = max([*fields, _KIND if kind else -1], default=-1) + 1
        offsets = {field: 4 + 4 * i for i, field in enumerate(present)}
        size = 4 + 4 * len(present)
        if kind:
            offsets[_KIND], size = size, size + 1
        self.bytes += b"\0" * (-(len(self.bytes) + 4 + 2 * count) % 4)
        start = len(self.bytes)
        self.bytes += struct.pack("<HH", 4 + 2 * count, size)
        self.bytes += struct.pack(f"<{count}H", *[offsets.get(i, 0) for i in range(count)])
        table = len(self.bytes)
        self.bytes += struct.pack("<i", table - start) + b"\0" * (4 * len(present))
        if kind:
            self.bytes.append(kind)
        return {-1: table, **{field: table + offsets[field] for field in present}}

    def structure(self, treedef: PyTreeDef) -> int:
        """Append a structure; where its table stands."""
        kind, keys, custom = _described(treedef)
        children = treedef.children() if kind not in (_LEAF, _NONE) else []
        parts: dict[int, Any] = {}
        if children:
            parts[_CHILDREN] = children
        if kind == _DICT:
            parts[_KEYS] = keys
        if custom:
            parts[_NAME], parts[_DATA] = custom
        places = self._table(kind, set(parts))
        for field, value in parts.items():
            if field in (_NAME, _DATA):
                end = b"\0" if field == _NAME else b""
                self._point(places[field], self._text(value, end))
                continue
            self._point(places[field], self._number(len(value)))
            slots = [self._number(0) for _ in value]
            for slot, item in zip(slots, value, strict=True):
                made = self._text(item, b"\0") if field == _KEYS else self.structure(item)
                self._point(slot, made)
        return places[-1]


def _described(treedef: PyTreeDef) -> tuple[int, list[bytes], tuple[bytes, bytes] | None]:
    """The kind of a structure's root, a dict's keys, a registered node's name and data."""
    if treedef._kind is None:
        return _LEAF, [], None
    kind = _KINDS.get(treedef._kind.form)
    if kind is None:
        node, data = stored_node(treedef)
        fields = getattr(node.cls, "_fields", None)  # of a class of named tuples
        held = node.write(data) if fields is None else json.dumps(list(fields)).encode()
        return _CUSTOM, [], (node.name.encode(), bytes(held))
    if kind != _DICT:
        return kind, [], None
    keys = treedef.node_data()[1]  # type: ignore[index]
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(
                "Serialization is supported only for dictionaries with string keys. Found key "
                f"{key} of type {type(key)}."
            )
    return kind, [key.encode() for key in keys], None


def written(treedef: PyTreeDef) -> bytes:
    """A structure as bytes. Raises TypeError for keys that are no strings, ValueError for nodes of
    classes that are not registered."""
    writer = _Writer()
    struct.pack_into("<I", writer.bytes, 0, writer.structure(treedef))
    return bytes(writer.bytes)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.bytes = data

    def _number(self, place: int) -> int:
        return int(struct.unpack_from("<I", self.bytes, place)[0])

    def _field(self, table: int, field: int) -> int | None:
        """Where a field of a table stands; None where it is left out."""
        start = table - struct.unpack_from("<i", self.bytes, table)[0]
        size = struct.unpack_from("<H", self.bytes, start)[0]
        if 4 + 2 * field >= size:
            return None
        offset = struct.unpack_from("<H", self.bytes, start + 4 + 2 * field)[0]
        return table + offset if offset else None

    def _target(self, place: int) -> int:
        return place + self._number(place)

    def _items(self, table: int, field: int) -> list[int]:
        place = self._field(table, field)
        if place is None:
            return []
        start = self._target(place)
        return [self._target(start + 4 + 4 * i) for i in range(self._number(start))]

    def _text(self, place: int) -> bytes:
        return self.bytes[place + 4 : place + 4 + self._number(place)]

    def structure(self, table: int) -> PyTreeDef:
        place = self._field(table, _KIND)
        kind = self.bytes[place] if place is not None else _LEAF
        children = [self.structure(x) for x in self._items(table, _CHILDREN)]
        if kind == _LEAF:
            return tree.tree_structure(0)
        if kind == _NONE:
            return tree.tree_structure(None)
        if kind in (_TUPLE, _LIST):
            node: tuple = (tuple if kind == _TUPLE else list, None)
        elif kind == _DICT:
            node = (dict, [self._text(x).decode() for x in self._items(table, _KEYS)])
        else:
            name, data = self._field(table, _NAME), self._field(table, _DATA)
            told = self._text(self._target(name)).decode() if name is not None else ""
            held = self._text(self._target(data)) if data is not None else b""
            return structure_of(told, held, tuple(children))
        return PyTreeDef.from_node_data_and_children(node, children)


def read(data: bytes) -> PyTreeDef:
    """The structure that bytes stand for."""
    reader = _Reader(data)
    return reader.structure(reader._number(0))
