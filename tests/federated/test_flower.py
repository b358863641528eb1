"""Flower: the battery, inside its simulation; errors of nodes; names that two nodes claim."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tasksieve.checks import check_transport
from tasksieve.checks.federated import ExampleSite
from tasksieve.federated.errors import FederatedError, SiteSilent
from tasksieve.federated.flower import FlowerSites, client_app
from tasksieve.federated.transport import SiteRefused

flower = pytest.importorskip("flwr.app", reason="needs Flower: pip install 'flwr[simulation]'")
NAMES = ("north", "south", "east")


class Grid:
    """Flower's grid, with client apps that are called."""

    def __init__(self, *apps):
        self.apps, self.asked = apps, []

    def get_node_ids(self):
        return range(len(self.apps))

    def send_and_receive(self, messages, *, timeout):
        for message in messages:
            node = message.metadata.dst_node_id
            self.asked.append(node)
            context = SimpleNamespace(node_config={"partition-id": node})
            if self.apps[node] is None:
                yield flower.Message(flower.Error(code=1, reason="row 4711"), reply_to=message)
            else:
                yield self.apps[node](message, context)


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    """Messages are made within a run: its numbers, which a server app is given by Flower."""
    task = pytest.importorskip("flwr.supercore.task_identity").TaskIdentity
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(task, name, 1)


def site_of(config):
    name = NAMES[config["partition-id"]]
    return name, ExampleSite(name)


@pytest.fixture
def app():
    return client_app(site_of)


def test_a_node_that_is_gone_is_silent(app):
    transport = FlowerSites(Grid(app, None, app), NAMES, patience=0.1)
    with pytest.raises(SiteSilent, match=r"no reply from south$") as silent:
        transport.exchange(b"abc")
    assert "4711" not in str(silent.value)


def test_nodes_that_have_answered_are_not_asked_again(app):
    grid = Grid(app, None, app)
    with pytest.raises(SiteSilent):
        FlowerSites(grid, NAMES, patience=0.7).exchange(b"abc")
    assert grid.asked.count(0) == grid.asked.count(2) == 1
    assert grid.asked.count(1) > 1


def test_two_nodes_cannot_be_one_site():
    app = client_app(lambda config: ("north", ExampleSite("north")))
    with pytest.raises(FederatedError, match="site-name: two nodes say that they are site north"):
        FlowerSites(Grid(app, app), ["north"]).exchange(b"abc")


def test_a_site_that_cannot_be_opened():
    def open_site(config):
        raise OSError("row 4711")

    with pytest.raises(SiteRefused, match="site-error: site at node 0 refuses") as refused:
        FlowerSites(Grid(client_app(open_site)), ["north"]).exchange(b"abc")
    assert "4711" not in str(refused.value)


@pytest.mark.slow
def test_the_battery_in_a_simulation():
    simulation = pytest.importorskip("flwr.simulation")
    server = pytest.importorskip("flwr.serverapp").ServerApp()
    ended = []

    @server.main()
    def main(grid, context):
        def connect(sites, patience):
            return nullcontext(FlowerSites(grid, sites, patience=patience))

        check_transport(connect, patience=15.0, longest=1 << 18)
        ended.append("well")

    simulation.run_simulation(
        server, client_app(site_of), num_supernodes=3, backend_config={"client_resources": {"num_cpus": 1}}
    )
    assert ended == ["well"]


@pytest.mark.slow
def test_a_path_in_a_simulation(tmp_path):
    """The bits of the same path without Flower."""
    pytest.importorskip("cryptography")
    from fault_processes import COORDINATOR, federation, followed
    from fault_processes import NAMES as SITES

    from tasksieve.federated.asking import Asking

    server = pytest.importorskip("flwr.serverapp").ServerApp()
    sites, found = federation(tmp_path / "here"), []

    @server.main()
    def main(grid, context):
        transport = FlowerSites(grid, SITES)
        found.append(followed(Asking(sites.plan, sites.keys[COORDINATOR], transport, tmp_path / "kept")))

    def open_site(config):
        name = SITES[config["partition-id"]]
        return name, federation(tmp_path / "there").nodes[name].reply

    pytest.importorskip("flwr.simulation").run_simulation(
        server, client_app(open_site), num_supernodes=3, backend_config={"client_resources": {"num_cpus": 1}}
    )
    assert found == [followed(sites.asking())]
