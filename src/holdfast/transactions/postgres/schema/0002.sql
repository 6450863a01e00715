-- Read records at the end of a statement that has called commit_group. A volatile function reads in a snapshot of its
-- own, so it sees what that commit has done. `status` is what commit_group has returned: so it is called before.
CREATE FUNCTION read_records(status bigint[], wanted bytea[]) RETURNS SETOF records LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY SELECT * FROM records WHERE key = ANY (wanted);
END
$$;
