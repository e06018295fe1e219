"""How `forms` and the native walk write a program down: the words of the header, and numbers.

For `graph.forms` and `native.code.walk`, which must agree.
"""

from __future__ import annotations

# Words of the header: entries - 1, entries that may still be taken, variables numbered so far, how
# many of them are operands of the program, and in bytes where the row goes on and where it ends.
HEADER = 8
MASK, FREE, COUNT, FIRST, CURSOR, END = range(6)
# A number is a byte, or this byte and four more where it does not fit.
ESCAPE = -128
