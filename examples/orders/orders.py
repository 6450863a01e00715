"""Serve a stream of orders from a stock and from balances: each order exactly once, and never more than there is.

Usage: python orders.py STORE_URL DIRECTORY_OF_ORDERS CHECKPOINT
"""

import sys

from pyspark.sql import Row, SparkSession

import holdfast


def serve(txn, order_id: str, order: Row) -> None:
    """Serve one order: all of this takes effect in one step, or not at all."""
    price = txn.get("stock", order.item, column="price", default=0)
    left = txn.get("stock", order.item, column="left", default=0)
    cost, balance = price * order.quantity, txn.get("balances", order.customer, default=0)
    outcome = "sold out" if left < order.quantity else "no money" if balance < cost else "served"
    if outcome == "served":
        txn.put("stock", order.item, left - order.quantity, column="left")
        txn.put("balances", order.customer, balance - cost)
        txn.add("totals", "income", cost)
    txn.put("orders", order_id, outcome)
    txn.add("totals", outcome)


def main(db: str, orders: str, checkpoint: str) -> None:
    spark = SparkSession.builder.appName("orders").getOrCreate()
    serve_batch = holdfast.TransactionalMap(serve, database=db).for_each_batch(key="order_id", job="orders")
    rows = spark.readStream.schema("order_id string, customer string, item string, quantity int").json(orders)
    stream = rows.writeStream.foreachBatch(serve_batch).option("checkpointLocation", checkpoint)
    stream.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
