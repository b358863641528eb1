"""Reports: one self-contained HTML file that says what was asked, what was answered, and the proof."""

from .content import FitQuality, ReportContent

__all__ = ["FitQuality", "ReportContent"]
