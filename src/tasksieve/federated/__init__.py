"""Sites keep their rows: paths of the pooled model from sums over sites, each value with its duality gap.

`Plan` is what everybody agrees to, `Rules` are those of a site.
"""

from .errors import FederatedError, SiteSilent
from .plan import Plan, PlanError
from .policy import Rules

__all__ = ["FederatedError", "Plan", "PlanError", "Rules", "SiteSilent"]
__dir__ = __all__.copy  # TAB shows these alone
