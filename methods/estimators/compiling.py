"""How kernels are compiled."""

from __future__ import annotations

from numba import njit

# For what allocates nothing: without the counting of references to the arrays that each call is given, which would take
# two thirds of the time.
njit_no_refcount = njit(cache=True, _nrt=False)  # type: ignore[call-overload]
