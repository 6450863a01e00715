-- The tables of a survey: what a check has to know of each record. Names of blobs are bytes of UTF-8.

-- name: tables
CREATE TABLE blob (
    name BLOB, is_small INT, bytes INT, content INT, writer BLOB, is_young INT, damaged_from INT,
    PRIMARY KEY (name, is_small)
) WITHOUT ROWID;
CREATE TABLE inode (
    key BLOB PRIMARY KEY, parent BLOB, id BLOB, is_directory INT, space INT, writer BLOB
) WITHOUT ROWID;
CREATE TABLE extent (blob BLOB, is_small INT, length INT, key BLOB, parent BLOB);
CREATE TABLE part (blob BLOB, is_small INT);
CREATE TABLE note (blob BLOB, key BLOB);
CREATE TABLE lease (id BLOB, lease BLOB, key BLOB, holder BLOB, silence TEXT);
CREATE TABLE leased (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE deleted (id BLOB PRIMARY KEY, key BLOB) WITHOUT ROWID;
CREATE TABLE charge (quota BLOB, root BLOB);
CREATE TABLE quota (quota BLOB, directory BLOB, key BLOB);
CREATE TABLE usage (quota BLOB, what TEXT, number INT, version INT, key BLOB);
CREATE TABLE trace (kind TEXT, id BLOB, key BLOB);
CREATE TABLE problem (kind TEXT, key BLOB);
CREATE TABLE start (id BLOB);
CREATE TABLE cycle (id BLOB);
-- Where what can be reached is: 'live' in the tree, 'waiting' in a deleted tree, 'lost' in neither.
CREATE TABLE region (id BLOB PRIMARY KEY, place TEXT) WITHOUT ROWID;
CREATE VIEW live AS SELECT id FROM region WHERE place = 'live';
CREATE VIEW waiting AS SELECT id FROM region WHERE place = 'waiting';

-- name: indexes
CREATE INDEX child ON inode (parent, id) WHERE is_directory;
CREATE INDEX inode_id ON inode (id);
CREATE INDEX directory_id ON inode (id) WHERE is_directory;
CREATE INDEX extent_blob ON extent (blob, is_small);
CREATE INDEX part_blob ON part (blob, is_small);
CREATE INDEX note_blob ON note (blob);
CREATE INDEX usage_quota ON usage (quota);
CREATE TABLE entry (parent BLOB PRIMARY KEY, names INT, space INT) WITHOUT ROWID;
-- A sum of integers overflows with an error, so it is made of two halves.
INSERT INTO entry
SELECT parent, count(*), sum(space >> 32) * 4294967296 + sum(space & 4294967295)
FROM inode WHERE key <> x'6900000000000000000000000000000000' GROUP BY parent;
-- What contains something, and is neither a directory nor waits for its collection.
CREATE VIEW lost AS
SELECT parent, names FROM entry
WHERE parent NOT IN (SELECT id FROM inode WHERE is_directory) AND parent NOT IN (SELECT id FROM deleted);
-- Blobs to which nothing refers. One without a name that a writer gives is foreign.
CREATE VIEW unreferenced AS
SELECT name, is_small, bytes, writer, is_young OR writer IN (SELECT id FROM leased) AS is_in_progress FROM blob
WHERE NOT EXISTS (SELECT 1 FROM extent WHERE extent.blob = name AND extent.is_small = blob.is_small)
    AND NOT EXISTS (SELECT 1 FROM part WHERE part.blob = name AND part.is_small = blob.is_small)
    AND (is_small OR NOT EXISTS (SELECT 1 FROM note WHERE note.blob = name));

-- name: roots of live
SELECT id FROM inode WHERE key = :root_key AND is_directory AND id = :root_id;

-- name: roots of waiting
SELECT id FROM deleted;

-- name: roots of lost
SELECT parent FROM lost;

-- name: walk
-- From `start`, which need not exist itself, to all directories that were not reached before.
INSERT INTO region
WITH RECURSIVE walk (id) AS (
    SELECT id FROM start WHERE id NOT IN (SELECT id FROM region)
    UNION
    SELECT inode.id FROM walk JOIN inode ON inode.parent = walk.id AND inode.is_directory
    WHERE inode.id NOT IN (SELECT id FROM region)
)
SELECT id, :place FROM walk;

-- name: unreached
SELECT id FROM inode WHERE is_directory AND id > :after AND id NOT IN (SELECT id FROM region) ORDER BY id LIMIT 1;

-- name: directory
SELECT key, parent FROM inode WHERE id = :id AND is_directory LIMIT 1;

-- name: unlisted
-- References to objects that the listing did not show.
SELECT DISTINCT blob FROM extent
WHERE NOT is_small AND blob > :after
    AND NOT EXISTS (SELECT 1 FROM blob WHERE name = extent.blob AND NOT blob.is_small)
ORDER BY blob LIMIT :limit;

-- name: objects
SELECT name, bytes FROM blob WHERE NOT is_small AND writer IS NOT NULL;

-- name: note damage
UPDATE blob SET damaged_from = :position WHERE name = :name AND NOT is_small;

-- name: object_bytes
SELECT coalesce(sum(bytes), 0) FROM blob WHERE NOT is_small;

-- name: unowned
SELECT name, bytes FROM unreferenced WHERE NOT is_small AND writer IS NOT NULL AND NOT is_in_progress;

-- name: leased
SELECT id FROM leased;

-- name: counts
SELECT
    (SELECT count(*) FROM inode WHERE is_directory),
    (SELECT count(*) FROM inode WHERE NOT is_directory),
    (SELECT coalesce(sum(length >> 32) * 4294967296 + sum(length & 4294967295), 0) FROM extent),
    (SELECT count(*) FROM blob WHERE NOT is_small),
    (SELECT coalesce(sum(bytes), 0) FROM blob WHERE NOT is_small),
    (SELECT count(*) FROM blob WHERE is_small),
    (SELECT coalesce(sum(bytes), 0) FROM blob WHERE is_small),
    (SELECT count(*) FROM unreferenced WHERE NOT is_small AND writer IS NOT NULL AND is_in_progress),
    (SELECT count(*) FROM note),
    (SELECT count(*) FROM deleted),
    (SELECT count(*) FROM lease),
    (SELECT count(*) FROM quota);
