r"""The error of a debiased coefficient from rows of unequal noise: a sandwich of the residuals of the fit that has the
feature unshrunk.

The estimate adds :math:`\sum_i a_i p_i` to the model's coefficient. With the score vector :math:`v_i = a_i / s_i` (but
for a factor), a step along it takes from the slopes what they say about this coefficient,

.. math::

    e_i = p_i - c_i v_i \frac{\sum_l a_l p_l}{\sum_l a_l c_l v_l}, \qquad
    \ell_i = \frac{a_i c_i v_i}{\sum_l a_l c_l v_l}, \qquad
    \operatorname{se}^2 = \frac{n}{n - k'} \sum_i \frac{(a_i e_i)^2}{1 - \ell_i} .

So neither the shrinkage of this coefficient nor, where the model has left it at zero, the estimate itself is in its own
error. The step uses up one degree of freedom, of which row i has the share :math:`\ell_i`: the more a row says about
the coefficient, the smaller e has become there, and dividing by :math:`1 - \ell_i` makes up for it (HC2 of MacKinnon
and White 1985). The k' degrees of freedom of everything else in the model belong to no single row, and are shared
by all rows (HC1). Where noise comes in groups of rows, sums over groups stand for rows; the sum of :math:`a_i e_i` is
then along the only direction of its group that the step has, so that :math:`1 - \sum_{i \in g} \ell_i` is exactly the
correction CR2 of Bell and McCaffrey (2002).

Few rows may carry such a sum, however many there are. With noise of one variance it has the mean and the variance of
chi-squared with

.. math::

    \frac1\nu = \sum_g \ell_g^2 + \Bigl(\sum_g \frac{\ell_g^2}{1 - \ell_g}\Bigr)^2 -
    \sum_g \Bigl(\frac{\ell_g^2}{1 - \ell_g}\Bigr)^2

degrees of freedom (Satterthwaite 1946; Bell and McCaffrey 2002; Imbens and Kolesár 2016, who find Student's
distribution with them reliable), all rows less one where they say the same, a third of that where the score vector is
normal. The other directions of the model take their part of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

Array = np.ndarray[Any, Any]

_WHOLE = 1e-8  # a row with all but this of the information has no residual


def sandwich(a: Array, slope: Array, curvature: Array, weights: Array, member: csr_array | None) -> tuple[Array, Array]:
    """Parts ``a_i e_i / sqrt(1 - l_i)`` (targets, units), whose squares add up to the variance but for the factor, and
    nu; NaN where one unit alone knows the coefficient.

    - `a` (targets, n): Weights of the slopes; a row of zeros is a feature that nothing is known of.
    - `member` (n, units): Which unit a row is in, where a unit has several rows.
    """
    pulls = a * (curvature / weights)  # c v
    share = a * pulls
    total = share.sum(axis=1, keepdims=True)
    total[total == 0.0] = 1.0
    share /= total
    parts = a * (slope - pulls * ((a @ slope)[:, None] / total))
    if member is not None:
        parts, share = parts @ member, share @ member
    rest = np.where(share < 1.0 - _WHOLE, 1.0 - share, np.nan)
    squares = np.square(share)
    around = squares / rest
    inverse = squares.sum(axis=1) + np.square(around.sum(axis=1)) - np.square(around).sum(axis=1)
    return parts / np.sqrt(rest), 1.0 / np.maximum(inverse, 1.0 / max(share.shape[1] - 1, 1))
