"""What fitted models show of a penalty, and how its certificates are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import RowNorm

Array = np.ndarray[Any, Any]


class Shown(RowNorm):
    """Nothing beside the coefficients, and no certificate files, unless a penalty says so."""

    def split(self, rows: Array) -> dict[str, Array] | None:
        """Parts by name whose sum the rows are, where the penalty is a minimum over such parts; called without data."""
        return None

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Of a penalty on features at unit strength: the same in the words of the certificate's format
        (`docs/certificate-format.md`), the header's `penalty` and arrays.

        A class defines it for itself, not for those derived from it (`proof.forms.form_of`).
        """
        raise NotImplementedError
