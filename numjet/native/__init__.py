"""Fast paths that read the interpreter's objects natively, each beside its specification in
Python. Layer between `cpu` and `api`. Where the layout of objects is not what `objects` declares,
Python runs instead, and `status` says why.
"""


def status() -> str:
    """"native" where objects are read natively; "not compiled yet"; or why Python does it."""
    from numjet.native import operators

    return operators.status()
