-- name: get
SELECT key, version, value, number FROM records WHERE key = %s;

-- name: get_many
SELECT key, version, value, number FROM records WHERE key = ANY (%b);

-- name: scan
SELECT key, version, value, number FROM records WHERE key >= %s AND key < %s ORDER BY key LIMIT %s;

-- name: scan_with_guards
-- One statement, so that the page and its guards come from one snapshot.
(SELECT 0, key, version, value, number FROM records WHERE key >= %s AND key < %s ORDER BY key LIMIT %s)
UNION ALL
SELECT 1, key, version, value, number FROM records WHERE key = ANY (%b);

-- name: commit_group
SELECT commit_group(
    %s::int8, %s::int8, %s::int4, %b::bytea[], %b::int4[], %b::int2[], %b::int8[], %b::bytea[], %b::int8[],
    %b::int4[], %b::int4[],
    %b::int4[], %b::int4[], %b::bytea[], %b::bytea[], %b::int8[], %b::int4[], %b::int4[], %b::int8[]
);

-- name: commit_and_read
SELECT done.status, found.key, found.version, found.value, found.number
FROM (
    SELECT commit_group(
        %s::int8, %s::int8, %s::int4, %b::bytea[], %b::int4[], %b::int2[], %b::int8[], %b::bytea[], %b::int8[],
        %b::int4[], %b::int4[],
        %b::int4[], %b::int4[], %b::bytea[], %b::bytea[], %b::int8[], %b::int4[], %b::int4[], %b::int8[]
    ) AS status
    OFFSET 0
) AS done
LEFT JOIN LATERAL read_records(done.status, %b::bytea[]) AS found ON true;

-- name: settle
-- Waits for the transaction that has locked the row. Then either the outcome is here, or that commit never happens.
INSERT INTO sessions AS s (id, version, outcome) VALUES (%(session)s, %(version)s, NULL)
ON CONFLICT (id) DO UPDATE SET version = greatest(s.version, excluded.version), used_at = now(),
    outcome = CASE WHEN s.version = excluded.version THEN s.outcome END
RETURNING outcome;

-- name: forget_sessions
DELETE FROM sessions WHERE used_at < now() - interval '1 day';

-- name: let_snapshot_idle
-- A snapshot holds no locks that anybody waits for, and its caller may work for long between two pages.
SET LOCAL idle_in_transaction_session_timeout = '1h';

-- name: make_durable
-- The flush of this commit flushes all commits before it, also those of other connections.
WITH setting AS (
    SELECT set_config('synchronous_commit', CASE now WHEN 'off' THEN 'on' ELSE now END, true)
    FROM current_setting('synchronous_commit') AS now
)
INSERT INTO sessions (id, version) SELECT %s, %s FROM setting ON CONFLICT (id) DO UPDATE SET used_at = now();

-- name: lock_shared
SELECT key, version, value, number FROM records WHERE key = ANY (%b) ORDER BY key FOR SHARE;

-- name: lock_exclusive
SELECT key, version, value, number FROM records WHERE key = ANY (%b) ORDER BY key FOR NO KEY UPDATE;

-- name: schema_exists
SELECT to_regclass('schema_version') IS NOT NULL;

-- name: has_schema
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s);

-- name: may_use_schema
-- Tables in a schema without this right look as if they did not exist.
SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s;

-- name: schema_version
SELECT max(version) FROM schema_version;
