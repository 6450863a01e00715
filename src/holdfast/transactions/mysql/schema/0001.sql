-- Every statement can be repeated: DDL in MySQL ends its transaction, so a migration that died may have done half of it.
-- Names have a prefix, because a database is often shared with other programs.

-- Records by key; the primary key is the table. 1024 bytes fit into a key of every row format that MySQL 8 creates.
CREATE TABLE IF NOT EXISTS holdfast_records (
    `key`   VARBINARY(1024) NOT NULL PRIMARY KEY,
    version BIGINT          NOT NULL,  -- of the commit that last wrote the record; 0 only inside transactions
    value   MEDIUMBLOB      NOT NULL,
    number  BIGINT          NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- One row for each connection that commits. A commit updates it, so that another connection can find out whether the
-- commit took effect when its reply was lost.
CREATE TABLE IF NOT EXISTS holdfast_sessions (
    id      BIGINT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,  -- of the last commit
    used_s  BIGINT NOT NULL,  -- when that was, in seconds since the epoch
    KEY used (used_s)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS holdfast_schema (
    id      TINYINT NOT NULL PRIMARY KEY,
    version INT     NOT NULL  -- the number of the last script of this folder that was carried out
) ENGINE = InnoDB;
