"""Keep tables of cells in a database: the global database of paper 003 (4.1).

A table maps a row and a column to a value. Values are typed: bytes, text, integers, floats, JSON and numpy arrays;
nothing is ever pickled. Cells are records of `holdfast.transactions`, so any number of them can be read and written in
one transaction.

Worked composition::

    with open_database("sqlite:///tmp/shop.db", create=True) as database:
        database.create_table("stock")
        database.put("stock", "apples", 5)

        def sell(txn):
            left = txn.get("stock", "apples")
            if left:
                txn.put("stock", "apples", left - 1)

        database.transact(sell)
"""

from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.cells import VALUE
from holdfast.records.database import Database, open_database
from holdfast.records.row_keys import Row
from holdfast.records.tables import Table
from holdfast.records.values import Value

__all__ = ["VALUE", "CellTransaction", "Database", "Row", "Table", "Value", "open_database"]
