-- name: get
SELECT key, version, value, number FROM records WHERE key = ?;

-- name: get_version
-- Without the value: a commit compares versions.
SELECT key, version, x'', number FROM records WHERE key = ?;

-- name: scan
SELECT key, version, value, number FROM records WHERE key >= ? AND key < ? ORDER BY key LIMIT ?;

-- name: count
-- Counts no further than needed to refute a condition.
SELECT count(*) FROM (SELECT 1 FROM records WHERE key >= ? AND key < ? LIMIT ?);

-- name: put
INSERT INTO records (key, version, value, number) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value, number = excluded.number;

-- name: delete
DELETE FROM records WHERE key = ?;
