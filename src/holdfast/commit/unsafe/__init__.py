"""Committers that show output before the job commits: `direct`, `stocator`, `emr`. Here for comparison."""
