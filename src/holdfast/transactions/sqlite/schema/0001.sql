-- Records by key. WITHOUT ROWID: one B-tree instead of two, so a lookup or an insert touches half as many pages.
CREATE TABLE records (
    key     BLOB    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,  -- of the commit that last wrote the record; never 0
    value   BLOB    NOT NULL,
    number  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
