-- Records by key. The free space in each page lets an update stay on its page, without touching the index.
CREATE TABLE records (
    key     bytea  NOT NULL PRIMARY KEY,
    version bigint NOT NULL,  -- of the commit that last wrote the record; 0 only inside the transaction that locks a key
    value   bytea  NOT NULL,
    number  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 85);

-- Values are small, or compressed already: do not try again.
ALTER TABLE records ALTER COLUMN value SET STORAGE EXTERNAL;

-- The last commit of each connection, so that a commit whose reply was lost can be looked up.
CREATE TABLE sessions (
    id      bigint NOT NULL PRIMARY KEY,
    version bigint NOT NULL,       -- the last version that the session has used, or that it must not use anymore
    outcome bigint[],              -- what commit_group returned for it; NULL if it was fenced
    used_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20);

-- Validate and apply a group of independent transactions: the validation and update phases of paper 004 (3.4, 3.5).
--
-- The steps come ordered by key, then by transaction (transactions/validation.py); kinds: 1 read, 2 guard, 3 insert, 4 put,
-- 5 delete, 6 add. `expected` is a version, 0 for absence, -1 for any. `guards` are indexes of steps.
-- A read that several transactions have in common is one step; `sharing_calls` are all of them but the first.
--
-- Returns a number for each transaction: the first step that conflicts, 0 if it was committed.
CREATE FUNCTION commit_group(
    session bigint, base bigint, group_size int,
    keys bytea[], calls int[], kinds smallint[], expected bigint[], payloads bytea[], deltas bigint[],
    shared_steps int[], sharing_calls int[],
    range_calls int[], range_guards int[], range_starts bytea[], range_ends bytea[], range_counts bigint[],
    bound_calls int[], bound_steps int[], bound_most bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    steps   CONSTANT int := coalesce(cardinality(keys), 0);
    max_number CONSTANT bigint := 4611686018427387903;         -- beyond it, an add is a conflict
    status  bigint[] := array_fill(0::bigint, ARRAY[group_size]);
    seen    bigint[] := array_fill(0::bigint, ARRAY[steps]);   -- the number of the record of each step
    made    boolean[] := array_fill(false, ARRAY[steps]);      -- whether the step created the row, for now
    k       bytea;
    v       bigint;
    num     bigint;
    head    bytea;                                             -- the first byte of a value to which something is added
    total   bigint;
    i       int := 1;
    j       int;
    c       int;
    valid   boolean;
    created bytea[];
BEGIN
    -- Lock every record in the order of the keys: what is only read, shared. A missing record is created with version 0
    -- for as long as this transaction lasts, so that its absence is locked too.
    WHILE i <= steps LOOP
        k := keys[i];
        IF kinds[i] = 3 THEN
            j := i;
            WHILE j < steps AND kinds[j + 1] = 3 LOOP j := j + 1; END LOOP;
            IF j - i < 4 THEN
                INSERT INTO records (key, version, value) VALUES (k, base + calls[i], payloads[i])
                ON CONFLICT (key) DO NOTHING;
                IF FOUND THEN
                    made[i] := true;
                ELSIF status[calls[i] + 1] = 0 THEN
                    status[calls[i] + 1] := i;
                END IF;
                i := i + 1;
            ELSE
                WITH inserted AS (
                    INSERT INTO records (key, version, value)
                    SELECT one.k, base + one.c, one.p FROM unnest(keys[i:j], calls[i:j], payloads[i:j]) AS one (k, c, p)
                    ON CONFLICT (key) DO NOTHING
                    RETURNING key
                )
                SELECT CASE WHEN count(*) < j - i + 1 THEN array_agg(key) END, count(*) INTO created, total FROM inserted;
                FOR m IN i..j LOOP
                    IF total = j - i + 1 OR keys[m] = ANY (created) THEN
                        made[m] := true;
                    ELSIF status[calls[m] + 1] = 0 THEN
                        status[calls[m] + 1] := m;
                    END IF;
                END LOOP;
                i := j + 1;
            END IF;
        ELSE
            FOR attempt IN 1..20 LOOP
                IF kinds[i] = 1 THEN
                    SELECT version, number INTO v, num FROM records WHERE key = k FOR SHARE;
                ELSIF kinds[i] = 6 THEN
                    SELECT version, number, substr(value, 1, 1) INTO v, num, head
                    FROM records WHERE key = k FOR NO KEY UPDATE;
                ELSE
                    SELECT version, number INTO v, num FROM records WHERE key = k FOR NO KEY UPDATE;
                END IF;
                EXIT WHEN FOUND;
                v := 0;
                num := 0;
                head := '';
                INSERT INTO records (key, version, value) VALUES (k, 0, '') ON CONFLICT (key) DO NOTHING;
                IF FOUND THEN
                    made[i] := true;
                    EXIT;
                END IF;
                -- Another transaction has created the record since the SELECT: lock that one.
                IF attempt = 20 THEN
                    RAISE serialization_failure;
                END IF;
            END LOOP;
            -- Several transactions of the group may read the key, or add to it.
            LOOP
                seen[i] := num;
                IF expected[i] <> -1 AND expected[i] <> v OR kinds[i] = 6 AND deltas[i] <> 0 AND (
                    head NOT IN ('', '\x69')  -- neither a counter nor an integer
                    OR abs(num + deltas[i]) > greatest(max_number, abs(num))
                ) THEN
                    IF status[calls[i] + 1] = 0 THEN
                        status[calls[i] + 1] := i;
                    END IF;
                    FOR m IN 1..coalesce(cardinality(shared_steps), 0) LOOP
                        IF shared_steps[m] = i AND status[sharing_calls[m] + 1] = 0 THEN
                            status[sharing_calls[m] + 1] := i;
                        END IF;
                    END LOOP;
                END IF;
                i := i + 1;
                EXIT WHEN i > steps OR keys[i] <> k;
            END LOOP;
        END IF;
    END LOOP;

    -- Conditions. Each statement sees everything that was committed before it began, thus all inserts into a range
    -- whose guard is locked by now.
    FOR m IN 1..coalesce(cardinality(range_calls), 0) LOOP
        SELECT count(*) INTO total FROM (
            SELECT FROM records
            WHERE key >= range_starts[m] AND key < range_ends[m] AND version <> 0 LIMIT range_counts[m] + 1
        ) AS counted;
        IF total <> range_counts[m] AND status[range_calls[m] + 1] = 0 THEN
            status[range_calls[m] + 1] := range_guards[m];
        END IF;
    END LOOP;
    FOR m IN 1..coalesce(cardinality(bound_calls), 0) LOOP
        i := bound_steps[m];
        c := bound_calls[m];
        total := seen[i];
        k := keys[i];
        WHILE i <= steps AND keys[i] = k AND calls[i] <= c LOOP
            IF kinds[i] = 6 AND (calls[i] = c OR status[calls[i] + 1] = 0) THEN
                total := total + deltas[i];
            END IF;
            i := i + 1;
        END LOOP;
        IF total > bound_most[m] AND status[c + 1] = 0 THEN
            status[c + 1] := bound_steps[m];
        END IF;
    END LOOP;

    -- Apply the valid transactions, and remove what the others created.
    i := 1;
    WHILE i <= steps LOOP
        k := keys[i];
        c := kinds[i];
        valid := status[calls[i] + 1] = 0;
        IF c = 3 THEN
            IF made[i] AND NOT valid THEN
                DELETE FROM records WHERE key = k;
            END IF;
            i := i + 1;
        ELSIF c = 6 THEN
            total := 0;
            v := NULL;
            j := i;
            WHILE j <= steps AND keys[j] = k LOOP
                IF status[calls[j] + 1] = 0 THEN
                    total := total + deltas[j];
                    v := base + calls[j];
                END IF;
                j := j + 1;
            END LOOP;
            IF v IS NOT NULL THEN
                UPDATE records SET number = number + total, version = v WHERE key = k;
            ELSIF made[i] THEN
                DELETE FROM records WHERE key = k;
            END IF;
            i := j;
        ELSE
            IF valid AND c = 4 THEN
                UPDATE records SET value = payloads[i], version = base + calls[i], number = 0 WHERE key = k;
            ELSIF made[i] OR (valid AND c = 5) THEN
                DELETE FROM records WHERE key = k;
            END IF;
            i := i + 1;
        END IF;
    END LOOP;

    -- Whoever settles a lost reply locks this row first: so either it finds the outcome here, or this fails.
    INSERT INTO sessions AS s (id, version, outcome) VALUES (session, base + group_size - 1, status)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, outcome = excluded.outcome, used_at = now()
    WHERE s.version < base;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the commit was given up' USING ERRCODE = 'HF001';
    END IF;
    RETURN status;
END
$$;

-- Read records at the end of a statement that has called commit_group. A volatile function reads in a snapshot of its
-- own, so it sees what that commit has done. `status` is what commit_group has returned: so it is called before.
CREATE FUNCTION read_records(status bigint[], wanted bytea[]) RETURNS SETOF records LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY SELECT * FROM records WHERE key = ANY (wanted);
END
$$;
