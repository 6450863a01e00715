"""Run examples/orders while workers die and drivers are killed: each order once, and never more than there is."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import SparkSession

import holdfast
from holdfast.records import Database
from holdfast.runtime import SeededRandom
from holdfast.transactions.base import Committed
from tests.integration.spark_session import PYTHONPATH, ROOT, by_value
from tests.patience import PATIENCE_S, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the database
]

by_value(__name__)

_PROGRAM = ROOT / "examples" / "orders" / "orders.py"
_ITEMS, _CUSTOMERS, _LEFT, _BALANCE = 20, 40, 60, 400


class Shop:
    """A database with stock and balances, and files of orders."""

    def __init__(self, folder: Path, files: int, orders: int) -> None:
        self.url = f"sqlite://{folder}/shop.db"
        self.orders = folder / "orders"
        self.checkpoint = folder / "checkpoint"
        self.db: Database = holdfast.open_database(self.url, create=True)
        for table in ("stock", "balances", "orders", "totals"):
            self.db.create_table(table)
        for number in range(_ITEMS):
            self.db.put("stock", f"i{number}", _LEFT, column="left")
            self.db.put("stock", f"i{number}", number + 1, column="price")
        for number in range(_CUSTOMERS):
            self.db.put("balances", f"c{number}", _BALANCE)
        chance = SeededRandom(7)
        self.orders.mkdir()
        self.placed: dict[str, dict[str, Any]] = {}
        for file in range(files):
            lines = [
                {
                    "order_id": f"{file}-{number}",
                    "customer": f"c{chance.pick(range(_CUSTOMERS))}",
                    "item": f"i{chance.pick(range(_ITEMS))}",
                    "quantity": 1 + chance.pick(range(6)),
                }
                for number in range(orders)
            ]
            self.placed |= {str(line["order_id"]): line for line in lines}
            (self.orders / f"{file}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def check(self) -> None:
        """Every order has one outcome, and stock, balances and totals say the same as the outcomes."""
        outcomes = {row: cells["value"] for row, cells in self.db.scan("orders")}
        assert outcomes.keys() == self.placed.keys()
        totals = {row: cells["value"] for row, cells in self.db.scan("totals")}
        income = totals.pop("income")
        assert totals == dict(Counter(outcomes.values()))
        sold: Counter[str] = Counter()
        paid: Counter[str] = Counter()
        for order_id, outcome in outcomes.items():
            order = self.placed[order_id]
            if outcome == "served":
                sold[order["item"]] += order["quantity"]
                paid[order["customer"]] += order["quantity"] * (int(order["item"][1:]) + 1)
        for item, cells in self.db.scan("stock"):
            assert cells["left"] == _LEFT - sold[item]
            assert cells["left"] >= 0
        for customer, cells in self.db.scan("balances"):
            assert cells["value"] == _BALANCE - paid[customer]
            assert cells["value"] >= 0
        assert income == sum(paid.values())
        assert len(set(outcomes.values())) == 3, "orders of every outcome"


def _program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("orders_example", _PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["orders_example"] = module
    spec.loader.exec_module(module)
    by_value("orders_example")
    return module


@pytest.fixture
def program() -> Iterator[ModuleType]:
    yield _program()
    del sys.modules["orders_example"]


def test_the_example_is_short() -> None:
    assert len(_PROGRAM.read_text().splitlines()) <= 40


def test_workers_that_die(
    spark: SparkSession, program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers die in units, and after commits whose reply nobody gets."""
    shop = Shop(tmp_path, files=1, orders=400)
    marks = str(tmp_path)
    serve = program.serve

    def is_first(name: str) -> bool:
        try:
            os.close(os.open(f"{marks}/{name}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def serve_and_die(txn: Any, order_id: str, order: Any) -> None:
        serve(txn, order_id, order)
        if order_id in ("0-177", "0-377") and is_first(f"unit-{order_id}"):
            os._exit(3)
        if order_id == "0-255" and is_first(f"commit-{order_id}"):
            _die_after_the_next_commit()

    monkeypatch.setattr(program, "serve", serve_and_die)
    program.main(shop.url, str(shop.orders), str(shop.checkpoint))
    shop.check()
    died = sorted(name for name in os.listdir(marks) if name.startswith(("unit-", "commit-")))
    assert died == ["commit-0-255", "unit-0-177", "unit-0-377"]  # a task may fail three times


def _die_after_the_next_commit() -> None:
    from holdfast.transactions.sqlite.backend import SqliteBackend

    commit = SqliteBackend.commit

    def commit_and_die(self: SqliteBackend, one: Any) -> Any:
        outcome = commit(self, one)
        if isinstance(outcome, Committed):
            os._exit(3)
        return outcome

    SqliteBackend.commit = commit_and_die  # type: ignore[method-assign] # this process ends with it


@pytest.mark.slow
def test_drivers_that_are_killed(tmp_path: Path) -> None:
    """The program is killed in the middle of its batch, again and again, and then runs to its end."""
    shop = Shop(tmp_path, files=4, orders=500)
    for kills in (200, 700, 1200, None):
        command = [sys.executable, str(_PROGRAM), shop.url, str(shop.orders), str(shop.checkpoint)]
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": PYTHONPATH, "PYSPARK_PYTHON": sys.executable},
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            if kills is None:
                assert process.wait(PATIENCE_S) == 0
            else:
                wait_until(
                    lambda least=kills: sum(1 for _ in shop.db.scan("orders")) >= least,
                    "no progress",
                    over=lambda running=process: running.poll() is not None,
                )
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    shop.check()
