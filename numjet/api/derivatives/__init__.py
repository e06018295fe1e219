"""Differentiation: `grad`, `vjp`, `jvp`, `hessian`, rules of the user's, implicit functions."""
