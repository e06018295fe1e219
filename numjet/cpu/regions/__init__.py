"""Loops and branches of a program as native code: control regions, loops held in registers,
loops over lanes and over elements.
"""
