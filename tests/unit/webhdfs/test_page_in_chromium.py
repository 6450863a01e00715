"""The page in a real browser, without a window: what people see, and that names of files are never code."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast.webhdfs.settings import ServerSettings
from tests.patience import PATIENCE_S, wait_until
from tests.unit.webhdfs.served import Served, serve_fresh

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(_CHROMIUM is None, reason="no chromium: install it, such as apt-get install chromium")

_HOSTILE = "<img src=x onerror=document.title='taken'>"
_TURNED = "bill\u202efdp.exe"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serve_fresh(duties_s=0.1) as found:
        namespace = found.namespace
        namespace.write_file(f"/data/{_HOSTILE}/<script>document.title='taken'</script>", b"." * 900)
        namespace.write_file("/data/raw/one.csv", b"." * 3000)
        namespace.write_file(f"/data/{_TURNED}", b"..")
        namespace.mkdirs("/data/closed", mode=0o700)
        wait_until(lambda: any(one["leads"] for one in found.ask_page("servers")["servers"]), "no server leads")
        yield found


def _show(url: str, folder: Path) -> str:
    """Return the document of a page after its scripts have run for some seconds of its own time."""
    assert _CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--window-size=1200,900"]
    command = [_CHROMIUM, *options, "--virtual-time-budget=4000", "--dump-dom", url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return run.stdout


def _part(document: str, start: str, end: str) -> str:
    found = re.search(f"{re.escape(start)}(.*?){re.escape(end)}", document, re.DOTALL)
    assert found is not None, f"no {start}"
    return found[1]


def test_the_page_shows_files_usage_and_servers_and_runs_no_name(server: Served, tmp_path: Path) -> None:
    document = _show(f"{server.address}/?user.name=ann#/data", tmp_path)
    name = server.namespace.configuration.name
    assert f"<title>{name} – Holdfast</title>" in document  # no name of a file has changed it
    assert "<img src=x" not in document.lower().replace('"', "")
    assert re.search(r'<p id="problem"[^>]* hidden', document)
    assert re.search(r'<button id="who"[^>]*>ann</button>', document)

    rows = _part(document, "<tbody>", "</tbody>")
    assert f">{html.escape(_HOSTILE, quote=False)}</bdi>" in rows
    assert "bill⟨U+202E⟩fdp.exe" in rows
    encoded = quote(_HOSTILE, safe="()!*'")
    assert f'href="#/data/{encoded}"' in rows
    assert 'href="#/data/raw"' in rows
    assert "2.9 KiB" in rows  # a directory has the size of what is below it

    picture = _part(document, '<div id="map">', "</div>")
    assert 'aria-label="raw, 2.9 KiB"' in picture
    assert html.escape(_HOSTILE, quote=False) in picture
    assert "1 directory may not be listed" in document
    assert "3.8 KiB in 3 files" in document

    servers = _part(document, '<table id="server-list">', "</table>")
    assert f"127.0.0.1:{server.port}" in servers
    assert ">leads</span>" in servers
    assert f"127.0.0.1:{server.port}, process " in _part(document, '<p id="leader"', "</p>")


@pytest.mark.slow
def test_open_files_and_a_directory_that_may_not_be_listed(server: Served, tmp_path: Path) -> None:
    with server.namespace.create_with_lease(f"/data/{_HOSTILE}/log"):
        document = _show(f"{server.address}/?user.name=root#servers", tmp_path)
    files = _part(document, '<table id="open-files">', "</table>")
    assert f">/data/{html.escape(_HOSTILE, quote=False)}/log</bdi>" in files
    assert '<strong>1</strong><span class="quiet">file being written' in document
    refused = _show(f"{server.address}/?user.name=ann#/data/closed", tmp_path)
    assert "Permission denied: the user may not read and execute here" in _part(refused, '<p id="problem"', "</p>")


@pytest.mark.slow
def test_who_proves_no_user_is_asked_for_a_token(tmp_path: Path) -> None:
    with serve_fresh(ServerSettings(url="", believes_names=False)) as closed:
        document = _show(closed.address, tmp_path)
    assert re.search(r'<dialog id="sign-in"[^>]* open', document)
    assert "This server does not believe user.name" in document


@pytest.mark.slow
def test_large_directories_come_in_pages(server: Served, tmp_path: Path) -> None:
    for number in range(1001):
        server.namespace.mkdirs(f"/many/{number:04}")
    document = _show(f"{server.address}/?user.name=ann#/many", tmp_path)
    assert "1,000 on this page" in document
    assert re.search(r'<div id="pager" class="pager">', document)
    assert document.count('href="#/many/') == 1000
