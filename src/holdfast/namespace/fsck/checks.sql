-- One query for each kind of finding, called like it, with its severity, what is wrong, and what to do about it: in the
-- order in which they are reported and repaired, as new inodes need a root to hang on. Columns: the key of a record, the
-- name of a blob, an inode id, the version of the record if only this one is meant, and a detail for a person. A finding
-- of an id without a key has the keys of all inodes with this id; with a key, the id is the detail.

-- name: no-root
-- damage: there is no root directory
-- next: repair: a root is made, and the tree hangs on it again
SELECT :root_key, NULL, NULL, 0, ''
WHERE NOT EXISTS (SELECT 1 FROM live)
    AND NOT EXISTS (SELECT 1 FROM problem WHERE kind = 'damaged-record' AND key = :root_key);

-- name: damaged-record
-- damage: a record cannot be read
-- next: repair: its bytes become a file in /lost+found; what it described is found in the next round
SELECT key, NULL, NULL, 0, '' FROM problem WHERE kind = 'damaged-record';

-- name: bad-name
-- damage: an entry has a name that no path can have
-- next: repair: it moves to /lost+found under another name
SELECT key, NULL, NULL, 0, '' FROM problem WHERE kind = 'bad-name';

-- name: duplicate-id
-- damage: several inodes have one id
-- next: repair: all but one get another id; entries stay with the directory that keeps it
SELECT NULL, NULL, id, 0, '' FROM inode GROUP BY id HAVING count(*) > 1;

-- name: file-with-children
-- damage: a file has entries
-- next: repair: the entries move to a directory in /lost+found
SELECT NULL, NULL, parent, 0, 'entries: ' || names FROM lost
WHERE parent IN (SELECT id FROM inode) AND parent <> :root_id;

-- name: deleted-tree
-- damage: a directory waits for its collection, and still exists
-- next: repair before the next holdfast namespace gc, which would delete its entries: the directory stays
SELECT NULL, NULL, id, 0, '' FROM deleted WHERE id IN (SELECT id FROM inode);

-- name: orphan
-- damage: entries of a directory that does not exist
-- next: repair: the directory is made again, with its entries, in /lost+found
-- Without a root, its entries are not lost: they hang on the root that a repair makes.
SELECT NULL, NULL, parent, 0, 'entries: ' || names FROM lost
WHERE parent NOT IN (SELECT id FROM inode) AND parent <> :root_id;

-- name: cycle
-- damage: a directory is below itself
-- next: repair: the directory moves to /lost+found
SELECT NULL, NULL, id, 0, '' FROM cycle;

-- name: referenced-garbage
-- damage: a blob of a file is noted as garbage
-- next: repair before the safety age of the blob is over: the note is deleted
SELECT key, blob, NULL, 0, '' FROM extent
WHERE NOT is_small AND blob IN (SELECT blob FROM note) GROUP BY blob, key;

-- name: missing-blob
-- damage: bytes of a file are missing
-- next: restore the object from a backup, or delete the file: no repair can bring them back
-- The bytes of a file in a deleted tree are not missed.
SELECT key, blob, NULL, 0, '' FROM extent
WHERE NOT EXISTS (SELECT 1 FROM blob WHERE name = extent.blob AND blob.is_small = extent.is_small)
    AND parent NOT IN waiting
GROUP BY blob, key;

-- name: short-blob
-- damage: a blob is shorter than its file needs
-- next: restore the object from a backup, or truncate the file: no repair can bring the bytes back
SELECT key, blob, NULL, 0, content || ' of ' || max(length) || ' bytes'
FROM extent JOIN blob ON name = extent.blob AND blob.is_small = extent.is_small
WHERE content < length AND parent NOT IN waiting
GROUP BY blob, key;

-- name: damaged-blob
-- damage: bytes of a file are not those that were written
-- next: restore the blob from a backup, or write the file again: no repair can bring the bytes back
SELECT key, blob, NULL, 0, 'from byte ' || damaged_from || ' of the blob on'
FROM extent JOIN blob ON name = extent.blob AND blob.is_small = extent.is_small
WHERE damaged_from < length AND length <= content
    AND parent NOT IN waiting
GROUP BY blob, key;

-- name: shared-blob
-- damage: several files have one blob
-- next: copy each of them with holdfast fs cp before you delete one, which destroys the others: no repair does
-- What is missing in the database is another finding.
SELECT NULL, blob, NULL, 0, '' FROM extent
WHERE NOT is_small OR EXISTS (SELECT 1 FROM blob WHERE name = extent.blob AND blob.is_small)
GROUP BY blob, is_small
HAVING count(*) > 1 AND max(parent NOT IN waiting);

-- name: unowned-blob
-- leftover: a blob belongs to no file
-- next: run holdfast namespace gc --sweep, which deletes it, unless it is in the database or damaged records may have
--   named it; or repair: it becomes a file in /lost+found
SELECT NULL, name, NULL, 0, bytes || ' bytes' FROM unreferenced
WHERE NOT is_small AND writer IS NOT NULL AND NOT is_in_progress
UNION ALL SELECT CAST(x'73' || name AS BLOB), NULL, NULL, 0, bytes || ' bytes' FROM unreferenced WHERE is_small;

-- name: foreign-object
-- leftover: an object among the blobs is not one
-- next: move it elsewhere: Holdfast did not write it, and never touches it
SELECT NULL, name, NULL, 0, bytes || ' bytes' FROM unreferenced WHERE NOT is_small AND writer IS NULL;

-- name: writer-without-lease
-- damage: a file is being written without a lease
-- next: repair: it is closed
SELECT key, NULL, NULL, 0, '' FROM inode WHERE writer IS NOT NULL AND id NOT IN (SELECT id FROM lease);

-- name: lease-without-file
-- damage: a lease of a file that its holder does not write
-- next: repair: it is deleted
SELECT lease, NULL, id, 0, '' FROM lease
WHERE NOT EXISTS (SELECT 1 FROM inode WHERE inode.key = lease.key AND inode.id = lease.id AND writer = holder);

-- name: stale-lease
-- leftover: the writer of a file is silent
-- next: run holdfast namespace gc, which closes the file, with what was synced
SELECT key, NULL, NULL, 0, silence FROM lease
WHERE silence IS NOT NULL
    AND EXISTS (SELECT 1 FROM inode WHERE inode.key = lease.key AND inode.id = lease.id AND writer = holder);

-- name: expired-mark
-- leftover: a directory is marked as being counted, and no client counts it
-- next: nothing: the next operation below it removes the mark
SELECT key, NULL, NULL, 0, '' FROM problem WHERE kind = 'expired-mark';

-- name: stray-time
-- leftover: the time of a directory that does not exist
-- next: run holdfast namespace gc --sweep, which deletes it
-- A directory that is lost, but has entries, will be made again.
SELECT key, NULL, id, 0, '' FROM trace
WHERE kind = 't' AND id NOT IN (SELECT id FROM inode WHERE is_directory)
    AND id NOT IN (SELECT id FROM deleted) AND id NOT IN (SELECT parent FROM entry);

-- name: stray-place
-- leftover: the place of a renamed directory that does not exist
-- next: run holdfast namespace gc --sweep, which deletes it
SELECT key, NULL, id, 0, '' FROM trace
WHERE kind = 'w' AND id NOT IN (SELECT id FROM inode WHERE is_directory)
    AND id NOT IN (SELECT id FROM deleted) AND id NOT IN (SELECT parent FROM entry);

-- name: stray-usage
-- leftover: the usage of a quota that does not exist
-- next: run holdfast namespace gc --sweep, which deletes it
SELECT key, NULL, NULL, version, '' FROM usage WHERE quota NOT IN (SELECT quota FROM quota);

-- name: wrong-usage
-- damage: the usage of a quota is wrong
-- next: repair: it is counted again while the directory is frozen
-- A directory with a quota counts itself, all below it, and the deleted trees that are charged to it.
WITH RECURSIVE below (quota, id) AS (
    SELECT quota, directory FROM quota WHERE directory IN live
    UNION
    SELECT quota, root FROM charge WHERE root IN waiting
    UNION
    SELECT below.quota, inode.id FROM below JOIN inode ON inode.parent = below.id AND inode.is_directory
),
used (quota, names, space) AS (
    SELECT
        below.quota,
        1 + (SELECT count(*) FROM charge WHERE charge.quota = below.quota) + coalesce(sum(entry.names), 0),
        coalesce(sum(entry.space >> 32) * 4294967296 + sum(entry.space & 4294967295), 0)
    FROM below LEFT JOIN entry ON entry.parent = below.id GROUP BY below.quota
),
noted (key, names, used_names, space, used_space) AS (
    SELECT
        quota.key,
        coalesce((SELECT number FROM usage WHERE usage.quota = quota.quota AND what = 'n'), 0),
        used.names,
        coalesce((SELECT number FROM usage WHERE usage.quota = quota.quota AND what = 's'), 0),
        used.space
    FROM quota JOIN used ON used.quota = quota.quota
    WHERE directory IN live
)
SELECT
    key, NULL, NULL, 0,
    'names ' || names || ', counted ' || used_names || '; space ' || space || ', counted ' || used_space
FROM noted WHERE names <> used_names OR space <> used_space;

-- name: inodes of an id
-- Those in the tree first.
SELECT key FROM inode WHERE id = :id
ORDER BY parent IN waiting, key;

-- name: files of a blob
SELECT key FROM extent WHERE blob = :blob GROUP BY key
ORDER BY parent IN waiting, key;

-- name: notes of a blob
SELECT key FROM note WHERE blob = :blob ORDER BY key;
