"""A binary heap of nodes, least key first, within compiled searches: places in ``heap`` of the numbers in ``keys``."""

from __future__ import annotations

from harness.core.compiling import njit_no_refcount


@njit_no_refcount
def push(heap, keys, size, node):
    """Put a node among the first ``size`` of the heap; returns how many there are then."""
    i = size
    heap[i] = node
    while i > 0:
        parent = (i - 1) // 2
        if keys[heap[parent]] <= keys[heap[i]]:
            break
        heap[parent], heap[i] = heap[i], heap[parent]
        i = parent
    return size + 1


@njit_no_refcount
def pop(heap, keys, size):
    """Take out the node of the least key; returns it, and how many are left."""
    top = heap[0]
    size -= 1
    heap[0] = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[i]] <= keys[heap[child]]:
            break
        heap[child], heap[i] = heap[i], heap[child]
        i = child
    return top, size
