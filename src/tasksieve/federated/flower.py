"""Flower (https://flower.ai) as a transport: its server app asks, its client apps are the sites.

Messages and responses travel as bytes in a ``ConfigRecord``. Flower's own aggregation and its secure aggregation, which
clips and rounds, take no part: sums and masks are those of this package. Needs ``flwr`` (1.20 or later).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..optional import require
from .errors import FederatedError, SiteSilent
from .transport import DamagedResponse, Reply, reply_in, respond

_RECORD = "tasksieve"
_PAUSE = 0.5  # seconds until sites that are not there yet are looked for again


def _flwr(part: str) -> Any:
    return require(f"flwr.{part}", "this transport needs", '"flwr>=1.20"')


class FlowerSites:
    """The coordinator's side: a transport through the grid that Flower gives to a server app.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    sites : iterable of str
        The names of all sites. Every connected node is asked; it says itself which site it is (its reply is signed).
    patience : float, default=600
        Seconds until an exchange ends with `SiteSilent`.

    Examples
    --------
    A server app::

        app = flwr.serverapp.ServerApp()

        @app.main()
        def main(grid, context):
            transport = FlowerSites(grid, ["north", "south", "east"])
    """

    def __init__(self, grid: Any, sites: Iterable[str], *, patience: float = 600.0) -> None:
        self.grid, self.sites, self.patience = grid, tuple(sites), patience
        self._app = _flwr("app")

    def exchange(self, message: bytes) -> Mapping[str, bytes]:
        """The replies of all sites to a message."""
        end = time.monotonic() + self.patience
        replies: dict[str, bytes] = {}
        heard: dict[int, str] = {}  # nodes that have answered, and for which site
        while missing := set(self.sites) - replies.keys():
            left = end - time.monotonic()
            if left <= 0.0:
                raise SiteSilent(missing)
            nodes = [node for node in self.grid.get_node_ids() if node not in heard]
            for node, site, response in self._ask(nodes, message, left):
                try:
                    reply = reply_in(response, site or f"at node {node}", message)
                except DamagedResponse:
                    continue
                if site in heard.values():
                    raise FederatedError("site-name", f"two nodes say that they are site {site}")
                heard[node] = site
                if site in missing:
                    replies[site] = reply
            if set(self.sites) - replies.keys():
                time.sleep(max(0.0, min(_PAUSE, end - time.monotonic())))
        return {site: replies[site] for site in self.sites}

    def _ask(self, nodes: list[int], message: bytes, seconds: float) -> Iterable[tuple[int, str, bytes]]:
        """Node, site and response of each node that has answered in time."""
        app = self._app
        asked = [
            app.Message(app.RecordDict({_RECORD: app.ConfigRecord({"message": message})}), node, "query")
            for node in nodes
        ]
        for reply in self.grid.send_and_receive(asked, timeout=seconds) if asked else ():
            if reply.has_error():  # a node that is gone; what Flower says of it may be about rows
                continue
            record = reply.content.config_records.get(_RECORD, {})
            site, response = record.get("site"), record.get("response")
            if isinstance(site, str) and isinstance(response, bytes):
                yield reply.metadata.src_node_id, site, response


def client_app(open_site: Callable[[Mapping[str, Any]], tuple[str, Reply]]) -> Any:
    """A client app that answers as a site.

    Parameters
    ----------
    open_site : callable
        ``open_site(config)`` gives the name of the site and what answers (``SiteNode.reply``). `config` is Flower's
        ``context.node_config``: what ``flower-supernode --node-config`` says, or ``partition-id`` in a simulation. It
        is called for each message, since Flower may start a process for each.

    Returns
    -------
    app : flwr.clientapp.ClientApp
    """
    flower = _flwr("app")
    app = _flwr("clientapp").ClientApp()

    @app.query()  # type: ignore[untyped-decorator,unused-ignore]
    def answer(message: Any, context: Any) -> Any:
        name = ""

        def reply(asked: bytes) -> bytes:
            nonlocal name
            name, site = open_site(context.node_config)
            return site(asked)

        response = respond(reply, message.content[_RECORD]["message"])
        record = flower.ConfigRecord({"site": name, "response": response})
        return flower.Message(flower.RecordDict({_RECORD: record}), reply_to=message)

    return app
