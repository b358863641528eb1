"""What can be proved about any model on given data, and certificates of it that others can check."""

from .certificate import Certificate as Certificate
