"""How the excess of two programs falls with the limit on their iterations, at their tightest tolerance.

    python audit/steps.py

Both stayed away from the optimum at every tolerance as long as the audit lifted their limits less far. That they come
there with more steps, and only with these, says what the reason was: neither their problem nor their tolerance.
"""

from __future__ import annotations

from dataclasses import replace

from cells import Asking, Cell, Worker
from datasets import prepare
from judge import TOL, problem_of
from programs import PROGRAMS, SHARES

#: tolerance, limits
TRIED = {
    Cell("skein-glm", "iris", "multinomial"): (1e-12, (25, 100, 400, 1600, 6400)),
    Cell("pyspark", "parkinsons", "squared"): (1e-12, (100, 1_000, 10_000, 100_000, 1_000_000)),
}


def main() -> None:
    for cell, (tolerance, limits) in TRIED.items():
        program, data = replace(PROGRAMS[cell.program], limit=600.0), prepare(cell.dataset, cell.loss)
        asking = Asking(cell, program, data.X, data.y, None)
        asking.run(None)  # its own path names the strengths
        for limit in limits:
            answers = asking.run(tolerance, limit=limit)["answers"]
            found = []
            for answer in answers:
                problem = problem_of(program.losses[cell.loss], cell.loss, data.X, data.y, answer["alpha"])
                low, high = problem.grade(answer["coef"], answer["intercept"], tol=TOL).relative_excess
                found.append(f"{low:.1e} to {high:.1e}")
            shares = ", ".join(f"{share:g}: {one}" for share, one in zip(SHARES, found, strict=True))
            print(f"{cell.key}, at most {limit} steps: excess at {shares}", flush=True)
    Worker.stop()


if __name__ == "__main__":
    main()
