"""Records: fields, defaults, frozen ones, slots, equality and copies with changes."""

from __future__ import annotations

import pytest

from numjet.base.record import field, record, replace


@record(frozen=True, slots=True)
class Point:
    """Two numbers."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y


@record(eq=False)
class Bag:
    """Things, of which each object has its own list."""

    name: str
    things: list[int] = field(default_factory=list)


@record(eq=False)
class Box(Bag):
    """A bag with a side."""

    side: float = 1.0

    def __post_init__(self) -> None:
        self.side *= 2

    def __repr__(self) -> str:
        return "a box"


def test_fields_by_position_name_and_default() -> None:
    assert (Point(1).x, Point(1).y, Point(1).sum) == (1, 2, 3)
    assert Point(y=5, x=1).y == 5
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1, 2, 3)  # type: ignore[call-arg]


def test_frozen_ones_are_keys_and_do_not_change() -> None:
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert Point(1) != (1, 2)
    assert {Point(1): "a"}[Point(1, 2)] == "a"
    with pytest.raises(AttributeError, match="Point.x is set once"):
        Point(1).x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="Point.x is set once"):
        del Point(1).x
    assert not hasattr(Point(1), "__dict__")


def test_defaults_are_made_anew_and_fields_inherited() -> None:
    one, other = Bag("a"), Bag("a")
    one.things.append(1)
    assert other.things == [] and Bag("b", [3]).things == [3]
    assert one != other and len({one, other}) == 2  # by identity
    box = Box("c", side=4.0)
    assert (box.name, box.things, box.side) == ("c", [], 8.0)
    assert box.things is not Box("c").things


def test_texts_and_copies() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2)" and repr(Box("c")) == "a box"
    assert replace(Point(1), y=7) == Point(1, 7)
    bag = Bag("a", [1])
    copy = replace(bag, name="b")
    assert copy.name == "b" and copy.things is bag.things and type(copy) is Bag
    with pytest.raises(TypeError):
        replace(bag, size=3)


def test_patterns_name_the_fields() -> None:
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


def test_records_that_may_change_are_no_keys() -> None:
    @record()
    class Pair:
        a: int
        b: int

    assert Pair(1, 2) == Pair(1, 2)
    with pytest.raises(TypeError):
        hash(Pair(1, 2))
