"""Write real flights with real Spark to a real S3 server while tasks and the driver are killed.

Start reading at `run`.
"""

from holdfast.demo.report import DemoReport
from holdfast.demo.run import run_demo

__all__ = ["DemoReport", "run_demo"]
