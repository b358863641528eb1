"""The kernels' threads as Python sees them; their own tests, without Python, are in `kernels_cpp/test_parallel.cpp`.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from kernel_helpers import needs_kernels

from tasksieve._kernels import kernels, reference

pytestmark = needs_kernels

# X'r of 20 chunks of columns, by one thread and by many.
PRODUCTS = """
import numpy as np
from tasksieve._kernels import kernels

x = np.asfortranarray(np.random.default_rng(0).standard_normal((30, 5000)))
r, offsets = np.ones(30), np.array([0, 10, 30])

def products(threads):
    out = np.empty((5000, 2))
    kernels.segment_products(x, None, r, offsets, False, threads, out)
    return out.tobytes()

alone = products(1)
"""


def run(code, **options):
    done = subprocess.run([sys.executable, "-c", PRODUCTS + code], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def strings(n):
    """More strings than fit a chunk, whose features need `counts` places."""
    text = np.random.default_rng(0).integers(0, 4, (n, 6), dtype=np.uint8)
    letters = np.full(256, 255, dtype=np.uint8)
    letters[:4] = range(4)
    offset, weight = np.array([0, 24, 0]), np.ones(2, dtype=np.float32)
    rows = kernels.string_rows(text, letters, 2, 1, offset, weight, 64)
    counts = np.empty(n, dtype=np.int64)
    kernels.count_hashed(rows, 3, counts)
    return rows, counts


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("where", [0, 9000, 19_999])
def test_what_a_kernel_throws_becomes_an_exception(threads, where):
    n = 20_000
    rows, counts = strings(n)
    spans = np.concatenate([[0], np.cumsum(counts)])
    indices, values = np.empty(spans[-1], dtype=np.int32), np.empty(spans[-1])
    spans[where + 1 :] -= 1
    with pytest.raises(ValueError, match="too little room"):
        kernels.hash_rows(rows, threads, spans, indices[:-1], values[:-1])
    spans[where + 1 :] += 1
    kernels.hash_rows(rows, threads, spans, indices, values)  # the threads are still there
    assert indices.min() >= 0


def test_results_do_not_depend_on_the_threads_that_help():
    rng = np.random.default_rng(0)
    x, r = np.asfortranarray(rng.standard_normal((40, 3000))), rng.standard_normal(40)
    offsets, expected = np.array([0, 7, 40]), np.empty((3000, 2))
    kernels.segment_products(x, None, r, offsets, False, 1, expected)
    wrong = []

    def call(threads):
        for _ in range(50):
            out = np.empty_like(expected)
            kernels.segment_products(x, None, r, offsets, False, threads, out)
            if not np.array_equal(out, expected):
                wrong.append(threads)

    callers = [threading.Thread(target=call, args=(2 + k % 4,)) for k in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    twin = np.empty_like(expected)
    reference.segment_products(x, None, r, offsets, False, 1, twin)
    np.testing.assert_allclose(expected, twin, rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_uses_threads_of_its_own():
    code = """
import os
assert products(3) == alone and kernels.standing_threads() == 2
child = os.fork()
if child == 0:
    right = kernels.standing_threads() == 0 and products(3) == alone and kernels.standing_threads() == 2
    os._exit(0 if right else 1)
assert os.waitpid(child, 0)[1] == 0
assert products(3) == alone
"""
    run(code, timeout=120)


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer needs all of the memory"
)
def test_fewer_threads_where_the_system_starts_no_more():
    """No room for the stack of another thread: the work is done by those that are there."""
    pytest.importorskip("resource")
    code = """
import resource
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (2 << 20), resource.RLIM_INFINITY))
assert products(8) == alone
print(kernels.standing_threads())
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc here to tell how much memory is in use")
    assert int(run(code, timeout=120)) == 0


@pytest.mark.parametrize(
    "end",
    [
        "products(4)",  # threads that wait
        "products(4); raise SystemExit(0)",
        "import atexit; atexit.register(products, 4)",  # threads that start late
    ],
    ids=["idle", "SystemExit", "at exit"],
)
def test_the_interpreter_ends_with_threads_about(end):
    run(end, timeout=120)
