-- Owner: filing, webhook.

-- Every claim and every end of a lease leaves a dead row behind, and claims step
-- over dead rows. By its own rule the server would clean a table up when a fifth
-- of it is dead, which for a large one is far too late.
ALTER TABLE lanes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
ALTER TABLE webhook_events SET (autovacuum_vacuum_scale_factor = 0.005, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE operations SET (autovacuum_vacuum_scale_factor = 0.005, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE restored_suppliers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
