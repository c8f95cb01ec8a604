-- Owner: filing, webhook.

-- Every claim and every end of a lease leaves a dead row behind, and claims step
-- over dead rows. By its own rule the server would clean a table up when a fifth
-- of it is dead, which for a large one is far too late.
-- SQLite keeps nothing of what a row was.
