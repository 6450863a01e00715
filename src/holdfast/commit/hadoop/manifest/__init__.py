"""The `manifest` committer (paper 002): tasks list their files as JSON, the job commit renames them in parallel."""
