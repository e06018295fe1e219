"""The partitioner: from a program on whole arrays to one on each device's parts.

`rules` says what a rule of a primitive is, `families` has them, `propagate` finds a layout for
every value of a jaxpr, `emit` writes the program of one device with the collectives that join them.
"""
