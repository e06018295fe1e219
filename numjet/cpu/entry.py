"""Names and layouts that generated entry points and their callers agree on.

`program_emit` writes the functions, `executable` calls them; neither needs the other.
"""

from __future__ import annotations

MAIN = "numjet_main"
OBJECTS = "numjet_objects"
# Fields of a NumPy array object (a stable layout since NumPy 1.0; `executable` tests it).
DATA_OFFSET, FLAGS_OFFSET = 16, 64
CONTIGUOUS_ALIGNED = 0x101
