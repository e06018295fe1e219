"""Names and layouts that generated programs, the runtime that runs them and their callers agree on.

`program.emit` and `program.table` write programs, `runtime.programs` runs them, `executable` calls
them; none needs the other. What every program needs is in the runtime's own code, so that a program
compiles to its kernels and little else.

The last argument of a program is its table of constants: HEADER words (`CONSTS` names them by their
byte offsets), then a pointer a constant. The first word points to what the program is as data:
`PROGRAM`'s words.
"""

from __future__ import annotations

MAIN = "numjet_main"
# Fields of a NumPy array object (a stable layout since NumPy 1.0; `executable` tests it). Without
# the interpreter's global lock, what every object begins with is longer.
DATA_OFFSET, FLAGS_OFFSET = object.__basicsize__, object.__basicsize__ + 48
CONTIGUOUS_ALIGNED = 0x101

HEADER = 5
CONSTS = {"program": 0, "main": 8, "inputs": 16, "outputs": 24, "parallel_for": 32}
# Number of places, where they are described (16 bytes each: which table and which of its entries,
# both as byte offsets, and an offset), addresses of functions, steps, the bytes of the steps of a
# program without a main function, and the most operands that a step has.
PROGRAM = {"count": 0, "places": 8, "functions": 16, "steps": 24, "bytes": 32, "most": 40}
# Where the tables stand beside each other while places are computed.
TABLES = {"arena": 0, "input": 8, "output": 16, "const": 24}
# The kinds of steps: see `program.table`.
CALL, CHUNKS, COPY, HOST, REPEAT = range(5)
KIND_BITS = 3

RUN, OBJECTS = "nj_program_run", "nj_program_objects"
PLACES, STEPS = "nj_program_places", "nj_program_steps"
LANES = "nj_lanes_"
# Symbols that the runtime defines whenever there is code to run, by their beginnings.
RUNTIME = ("nj_parallel_for", "nj_pool_", "nj_program_", LANES)

# Room for handles; more threads than this are not started.
MOST_WORKERS = 1023
