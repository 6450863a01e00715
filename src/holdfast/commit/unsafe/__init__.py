"""Committers that publish output before the job commits: `direct`, `stocator`, `emr`. For comparison only."""
