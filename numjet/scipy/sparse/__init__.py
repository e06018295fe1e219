"""numjet.scipy.sparse: iterative solvers."""

from numjet.scipy.sparse import linalg as linalg
