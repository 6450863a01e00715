"""The `magic` committer (papers 000 and 001): delayed uploads, recorded below ``__magic`` paths."""
