-- Who went into a customer. Holds merged records only, and does not begin with the scope: look-ups by id must not choose it.
create index customer_merged on customer (merged_into) where merged_into is not null;
