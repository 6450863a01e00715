"""Keep tables of cells in a database: the global store of paper 003 (4.1).

A table maps a row and a column to a value. Values are typed: bytes, text, integers, floats, JSON and numpy arrays;
nothing is ever pickled. Cells are records of `holdfast.transactions`, so any number of them can be read and written in
one transaction.

Worked composition::

    with open_store("sqlite:///tmp/shop.db", create=True) as store:
        store.create_table("stock")
        store.put("stock", "apples", 5)

        def sell(txn):
            left = txn.get("stock", "apples")
            if left:
                txn.put("stock", "apples", left - 1)

        store.transact(sell)
"""

from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.cells import VALUE
from holdfast.records.opening import open_store
from holdfast.records.row_keys import Row
from holdfast.records.store import Store
from holdfast.records.tables import Table
from holdfast.records.values import Value

__all__ = ["VALUE", "CellTransaction", "Row", "Store", "Table", "Value", "open_store"]
