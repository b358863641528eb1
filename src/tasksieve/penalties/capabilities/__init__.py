"""What a penalty may know beside its core, by file: everything has a default.

`derived`: strengths, positivity, the quadratic part; rarely written. `joint`: feasibility as a matter of all rows.
`blocks`: rows with one norm together. `compiled`: forms that kernels know. `sharper`: more for screening. `shown`:
parts, ties and certificate files.
"""

from .blocks import Blocks
from .compiled import BlockForm, CompiledForms, RowForm
from .derived import Derived
from .joint import REJECT, Feasibility
from .sharper import SharperScreening
from .shown import Shown

__all__ = [
    "REJECT",
    "BlockForm",
    "Blocks",
    "CompiledForms",
    "Derived",
    "Feasibility",
    "RowForm",
    "SharperScreening",
    "Shown",
]
