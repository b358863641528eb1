r"""Tasks: from the data as users have it to one flat sample space.

Three forms come in: rows stacked with a ``task`` label each, a list of matrices with a list of targets, one
matrix shared by all tasks with the targets as columns of Y. One form goes on: the entries of y, the weights
and, later, residuals and dual points are one flat vector of length N, in which task t is the slice
``offsets[t]:offsets[t + 1]``. A label that is not observed, a row of weight 0 and a row held out in
cross-validation are one and the same thing: a row whose weight is 0. Nothing is ever copied for them.

.. math:: \bar n = \frac1T \sum_{t,i} s_{ti}, \qquad s_{ti} = \text{sample weight, 0 if } y_{ti}
   \text{ is not observed}
"""

from .class_weights import with_class_weight
from .cluster import map_rows
from .data import Layout, TaskData, lay_out, read_tasks
from .fills import Fills
from .gather import GatheredFolds, gather_at_once, gather_rows, one_matrix
from .labels import (
    label_array,
    observed_classes,
    outcomes_in_order,
    read_groups,
    read_labels,
    read_task,
    refuse_empty_tasks,
    refuse_real_numbers,
    row_labels,
    some_of,
    task_codes,
)
from .matrix import read_matrix, read_stacked, refuse_not_finite
from .moments import TaskMoments
from .moving import on_device, placed
from .offset import add_offset, read_offset
from .ordered import known_order
from .patterned import PatternedMatrix, by_pattern
from .patterns import Patterns
from .refusals import refuse_masked_or_complex
from .sample_space import Form, TaskLabels
from .scores import linear_scores
from .source import count_rows, first_matrix, is_task_list, kind_of
from .task_graph import read_graph, read_task_graph
from .tensors import like, stack_rows, to_host, to_numpy
from .weights import read_feature_weights, read_task_weights, without_common_factor
