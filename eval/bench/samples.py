"""Reliability of shares of samples as confidences, without tuning: as pooled, and shrunk by the number of samples.

Each row is a file of recorded answers. "ECE" is the expected calibration error over all candidates in ten bins of equal
width, and "Brier" the mean squared error. Their prior, `lmkbc.select.ranking.PRIOR_DRAWS`, is one number for all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eval.bench import parsed
from eval.bench.figures import Table
from eval.bench.recorded import GEMMA, ROWS, Row, opened, proposed, row_parser
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.reliability import Reliability
from lmkbc.workspace import Workspace

SAMPLED = {name: ROWS[name] for name in ("Qwen", "GPT-4", "GPT-3.5")} | {
    "Gemma": Row("2026 val, Gemma, one sample", "2026", (GEMMA,), None)
}


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__, *SAMPLED)
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    given = parsed(parser, argv, rows=["Qwen"], limit=40)
    workspace, table = Workspace(data=given.data), Table("samples", "recorded answers")
    for row in map(SAMPLED.__getitem__, given.rows):
        edition, examples, run, recipe = opened(workspace, row, given.limit)
        outcomes = Outcomes(proposed(run, recipe, examples), examples, edition)
        query, place = np.nonzero(outcomes.ranking.scores >= 0)
        share, right = outcomes.ranking.scores[query, place], np.minimum(outcomes.gains[query, place], 1).astype(float)
        samples = np.array(outcomes.ranking.draws)[query]
        shrunk = outcomes.ranking.shares[query, place]
        before, after = (Reliability.of(sure, right, query) for sure in (share, shrunk))
        table.add(
            row.label,
            {
                "samples": f"{samples.mean():.1f}",
                "ECE, share": f"{before.ece:.3f}",
                "ECE, shrunk": f"{after.ece:.3f}",
                "Brier, share": f"{before.brier:.3f}",
                "Brier, shrunk": f"{after.brier:.3f}",
            },
        )
