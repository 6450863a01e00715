-- Braces are filled in by the code. Keys and values are hexadecimal or base64 literals, so they need no escaping.
--
-- Where rows are locked by a list of keys, FORCE INDEX and ORDER BY together make the optimizer look up the keys one by
-- one, in order. Without them, it may scan the table, and wait for locks of records that the transaction does not touch.

-- name: get
SELECT `key`, version, value, number FROM holdfast_records FORCE INDEX (PRIMARY) WHERE `key` IN ({keys}) ORDER BY `key`;

-- name: scan
SELECT `key`, version, value, number FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` >= {start} AND `key` < {end} ORDER BY `key` LIMIT {limit};

-- name: lock_shared
SELECT `key`, version, number FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` IN ({keys}) ORDER BY `key` LOCK IN SHARE MODE;

-- name: lock_exclusive
SELECT `key`, version, number FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` IN ({keys}) ORDER BY `key` FOR UPDATE;

-- name: get_shared
SELECT `key`, version, value, number FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` IN ({keys}) ORDER BY `key` LOCK IN SHARE MODE;

-- name: get_exclusive
SELECT `key`, version, value, number FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` IN ({keys}) ORDER BY `key` FOR UPDATE;

-- name: when_flushed
SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog;

-- name: flush_log
FLUSH LOCAL ENGINE LOGS;

-- name: places_in_log
SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_current', 'Innodb_lsn_flushed');

-- name: claim
-- Creates records, or locks those that exist. INSERT IGNORE would lock an existing record only in shared mode: two such
-- transactions that wait for a third one's record would then block each other as soon as it is deleted.
INSERT INTO holdfast_records (`key`, version, value, number) VALUES {rows}
ON DUPLICATE KEY UPDATE holdfast_records.number = holdfast_records.number;

-- name: claimed
-- The claimed records that existed before: not those of this transaction, nor its placeholders.
SELECT `key`, version, number FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` IN ({keys}) AND version <> 0 AND version NOT BETWEEN {first} AND {last} ORDER BY `key`;

-- name: no_integers
-- Those of the locked records that hold neither a counter nor an integer, and the first byte of their values.
SELECT `key`, LEFT(value, 1) FROM holdfast_records FORCE INDEX (PRIMARY)
WHERE `key` IN ({keys}) AND LEFT(value, 1) NOT IN ('', 'i') ORDER BY `key`;

-- name: count
-- Counts no further than needed to refute a condition, and leaves out what the transaction itself has inserted.
SELECT COUNT(*) FROM (
    SELECT 1 FROM holdfast_records FORCE INDEX (PRIMARY)
    WHERE `key` >= {start} AND `key` < {end} AND version <> 0 AND version NOT BETWEEN {first} AND {last}
    LIMIT {limit}
) AS found;

-- name: put
REPLACE INTO holdfast_records (`key`, version, value, number) VALUES {rows};

-- name: set_numbers
-- The records exist and are locked: only their versions and numbers change, the values stay where they are.
INSERT INTO holdfast_records (`key`, version, value, number) VALUES {rows}
ON DUPLICATE KEY UPDATE version = VALUES(version), number = VALUES(number);

-- name: delete
-- One key at a time: for a list, the optimizer may scan the table, and DELETE knows no FORCE INDEX.
DELETE FROM holdfast_records WHERE `key` = {key};

-- name: claim_session
-- Creates the row, or locks it.
INSERT INTO holdfast_sessions (id, version, used_s) VALUES ({session}, 0, UNIX_TIMESTAMP())
ON DUPLICATE KEY UPDATE holdfast_sessions.version = holdfast_sessions.version;

-- name: lock_session
SELECT version FROM holdfast_sessions WHERE id = {session} FOR UPDATE;

-- name: save_session
REPLACE INTO holdfast_sessions (id, version, used_s) VALUES ({session}, {version}, UNIX_TIMESTAMP());

-- name: old_sessions
SELECT id FROM holdfast_sessions WHERE used_s < UNIX_TIMESTAMP() - {age_s} LIMIT {limit};

-- name: delete_session
DELETE FROM holdfast_sessions WHERE id = {session} AND used_s < UNIX_TIMESTAMP() - {age_s};

-- name: snapshot_level
-- For the next transaction only.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;

-- name: begin_snapshot
-- The first query takes the snapshot.
START TRANSACTION READ ONLY;

-- name: begin_lasting_snapshot
-- Takes the snapshot at once, and not with the first query, which may come much later.
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;

-- name: idle_thread
-- A thread of this user that holds a transaction open, but waits for a client.
SELECT id FROM information_schema.processlist WHERE id = {thread} AND command = 'Sleep';

-- name: set_up
-- READ COMMITTED takes no locks on gaps between records, so that a group never waits for keys that are not its own. The
-- server ends a connection that is idle for a minute, so that a client that vanished does not keep its locks for hours.
--
-- An administrator may have changed what the rest stands for, for the whole server: a limit for rows would cut off reads,
-- a chained transaction would keep its snapshot and its locks, and without the checks InnoDB may lock a whole table.
-- MariaDB can also end connections with open transactions sooner than others: a snapshot may be idle for an hour.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION innodb_lock_wait_timeout = {lock_wait_s}, lock_wait_timeout = {lock_wait_s}, wait_timeout = {idle_s},
    sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',
    sql_select_limit = 18446744073709551615, completion_type = 'NO_CHAIN',
    sql_big_selects = 1, sql_safe_updates = 0, unique_checks = 1, foreign_key_checks = 1
    /*M! , idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, idle_write_transaction_timeout = 0 */;
SELECT CONNECTION_ID(), @@max_allowed_packet;

-- name: server
SELECT VERSION();

-- name: cluster
SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_single_primary_mode');

-- name: schema_version
SELECT version FROM holdfast_schema WHERE id = 1;

-- name: save_schema_version
REPLACE INTO holdfast_schema (id, version) VALUES (1, {version});
