"""Serve a stream of orders from a stock and from balances: each order exactly once, and never more than there is.

python orders.py STORE_URL DIRECTORY_OF_ORDERS CHECKPOINT
"""

import sys

from pyspark.sql import DataFrame, Row, SparkSession

import holdfast

ORDER = "order_id string, customer string, item string, quantity int"


def serve(txn, order_id: str, order: Row) -> None:
    """Serve one order: all of this happens in one step, or not at all."""
    price = txn.get("stock", order["item"], column="price", default=0)
    left = txn.get("stock", order["item"], column="left", default=0)
    balance = txn.get("balances", order["customer"], default=0)
    if left < order["quantity"]:
        outcome = "sold out"
    elif balance < price * order["quantity"]:
        outcome = "no money"
    else:
        outcome = "served"
        txn.put("stock", order["item"], left - order["quantity"], column="left")
        txn.put("balances", order["customer"], balance - price * order["quantity"])
        txn.add("totals", "income", price * order["quantity"])
    txn.put("orders", order_id, outcome)
    txn.add("totals", outcome)


def main(store: str, orders: str, checkpoint: str) -> None:
    spark = SparkSession.builder.appName("orders").getOrCreate()
    units = holdfast.TransactionalMap(serve, store=store)

    def serve_batch(batch: DataFrame, number: int) -> None:
        units.run(batch, key="order_id", job=f"orders-{number}")  # a batch that Spark repeats goes on where it was

    stream = spark.readStream.schema(ORDER).json(orders).writeStream.foreachBatch(serve_batch)
    stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
