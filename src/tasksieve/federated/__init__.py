"""Sites keep their rows: paths of the pooled model from sums over sites, each value with its duality gap.

`Plan` is what everybody agrees to, `Site` the folder of a site with its `Rules`, `fit` the coordinator; `Folders`,
`HttpsSites` and `InProcess` are ways between them. `simulate` does it all with arrays of one process, to try it.
"""

from .certify import certify
from .errors import FederatedError, SiteSilent
from .fitted import FederatedFit
from .fitting import RoundProgress, fit
from .folders import Folders, SiteFolder
from .https import HttpsSite, HttpsSites
from .keys import PrivateKeys, PublicKeys
from .node import SiteNode
from .plan import Plan, PlanError
from .policy import Rules
from .simulating import simulate
from .site import Site
from .together import HeldOut
from .transport import InProcess, SiteRefused, Transport

__all__ = [
    "FederatedError", "FederatedFit", "Folders", "HeldOut", "HttpsSite", "HttpsSites", "InProcess", "Plan", "PlanError",
    "PrivateKeys", "PublicKeys", "RoundProgress", "Rules", "Site", "SiteFolder", "SiteNode", "SiteRefused",
    "SiteSilent", "Transport", "certify", "fit", "simulate",
]  # fmt: skip
__dir__ = __all__.copy  # TAB shows these alone
