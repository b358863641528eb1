"""Sites behind folders and behind HTTPS, for tests."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tasksieve.federated.certificates import write_certificate
from tasksieve.federated.folders import Folders, SiteFolder
from tasksieve.federated.https import HttpsSite, HttpsSites


@contextmanager
def folder_sites(place: Path, sites, patience):
    """One thread a site looks into its folder."""
    folders = {name: place / name for name in sites}
    transport = Folders(folders, patience=patience, pause=0.005)
    stop = threading.Event()
    serve = {name: SiteFolder(folder, name).serve for name, folder in folders.items()}
    threads = [
        threading.Thread(target=serve[name], args=(reply,), kwargs={"pause": 0.005, "stop": stop})
        for name, reply in sites.items()
    ]
    for thread in threads:
        thread.start()
    try:
        yield transport
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def certificates(place: Path, *names: str) -> dict[str, tuple[Path, Path]]:
    return {name: write_certificate(place, name, ["localhost", "127.0.0.1"]) for name in ("coordinator", *names)}


def https_site(reply, own, trusted, **others) -> HttpsSite:
    others = {"coordinator": "coordinator", "host": "127.0.0.1", "port": 0, **others}
    return HttpsSite(reply, certificate=own[0], key=own[1], trusted=trusted, **others)


@contextmanager
def https_sites(place: Path, sites, patience):
    """One server a site."""
    files = certificates(place, *sites)
    with ExitStack() as stack:
        addresses = {}
        for name, reply in sites.items():
            site = stack.enter_context(https_site(reply, files[name], files["coordinator"][0]))
            addresses[name] = f"https://localhost:{site.address[1]}"
        yield https_coordinator(addresses, files, patience)


def https_coordinator(addresses, files, patience, own="coordinator") -> HttpsSites:
    certificate, key = files[own]
    trusted = [files[name][0] for name in files if name != "coordinator"]
    return HttpsSites(addresses, certificate=certificate, key=key, trusted=trusted, patience=patience, pause=0.02)
