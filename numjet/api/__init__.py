"""The transformations' public functions, and dispatch. Imports everything below; holds no
namespaces. `docs/architecture.md` lists its folders.
"""
