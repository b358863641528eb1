"""What can be proved about any model on given data, and certificates of it that others can check.

``prove.py`` has gap and safe tests of any coefficients, ``forms.py`` a problem in the words of the format,
``dual.py`` dual points, ``claims.py`` what ``verify.py`` can prove of a certificate before it is written.
"""

from .certificate import Certificate as Certificate
