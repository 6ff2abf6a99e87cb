-- schema 1, application_id 1348031044
CREATE VIEW attempts_view AS
SELECT runs.run_id, runs.sweep, hosts.name AS host, variants.variant_id,
       run_variants.text AS variant, run_variants.arm, trials.trial_index, trials.block,
       trials.state AS trial_state, attempts.attempt_id, attempts.number, attempts.outcome,
       attempts.reason_code, attempts.reason_text, attempts.elapsed_ns, boots.boot_id,
       attempts.emulated, attempts.leased_utc, attempts.ended_utc, attempts.attempt
  FROM attempts
  JOIN trials USING (trial)
  JOIN cells USING (cell)
  JOIN runs ON runs.run = attempts.run
  JOIN hosts ON hosts.host = cells.host
  JOIN variants ON variants.variant = cells.variant
  JOIN run_variants
    ON run_variants.run = cells.run AND run_variants.variant_index = cells.variant_index
  LEFT JOIN boots ON boots.boot = attempts.boot;
CREATE VIEW samples_view AS
SELECT attempts_view.*, metrics.metric_id, metrics.name AS metric, metrics.unit,
       metrics.reducer, metrics.better, samples.value, samples.absent_reason
  FROM attempts_view
  JOIN samples ON samples.attempt = attempts_view.attempt
  JOIN metrics ON metrics.metric = samples.metric;
CREATE TABLE attempts (
  attempt INTEGER PRIMARY KEY,
  attempt_id TEXT NOT NULL UNIQUE,
  run INTEGER NOT NULL REFERENCES runs,
  trial INTEGER NOT NULL REFERENCES trials,
  number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  facts INTEGER NOT NULL REFERENCES facts,
  boot INTEGER REFERENCES boots,
  leased_utc INTEGER,
  lost_utc INTEGER,
  ended_utc INTEGER,
  outcome TEXT,
  reason_code TEXT NOT NULL,
  reason_text TEXT NOT NULL,
  reported_outcome TEXT,
  reported_reason_code TEXT,
  reported_reason_text TEXT,
  elapsed_ns INTEGER,
  agent_started_utc INTEGER,
  agent_ended_utc INTEGER,
  exit_code INTEGER,
  exit_signal INTEGER,
  emulated INTEGER NOT NULL,
  frames_through INTEGER NOT NULL,
  final_sequence INTEGER,
  UNIQUE (trial, number)
) STRICT;
CREATE TABLE audit (
  audit INTEGER PRIMARY KEY,
  at_utc INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE TABLE boots (
  boot INTEGER PRIMARY KEY,
  host INTEGER NOT NULL REFERENCES hosts,
  boot_id TEXT NOT NULL,
  first_seen_utc INTEGER NOT NULL,
  UNIQUE (host, boot_id)
) STRICT;
CREATE TABLE cells (
  cell INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES runs,
  host INTEGER NOT NULL REFERENCES hosts,
  variant_index INTEGER NOT NULL,
  variant INTEGER NOT NULL REFERENCES variants,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  UNIQUE (run, host, variant_index)
) STRICT;
CREATE TABLE counter_values (
  attempt INTEGER NOT NULL REFERENCES attempts,
  counter INTEGER NOT NULL REFERENCES counters,
  value INTEGER NOT NULL,
  PRIMARY KEY (attempt, counter)
) STRICT, WITHOUT ROWID;
CREATE TABLE counters (
  counter INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  unit TEXT NOT NULL,
  UNIQUE (name, unit)
) STRICT;
CREATE TABLE epochs (
  epoch INTEGER PRIMARY KEY,
  opened_utc INTEGER NOT NULL
) STRICT;
CREATE TABLE facts (
  facts INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  content TEXT NOT NULL
) STRICT;
CREATE TABLE frames (
  attempt INTEGER NOT NULL REFERENCES attempts,
  sequence INTEGER NOT NULL,
  received_utc INTEGER NOT NULL,
  PRIMARY KEY (attempt, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE histograms (
  histogram INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL REFERENCES attempts,
  sequence INTEGER NOT NULL,
  name TEXT NOT NULL,
  unit TEXT NOT NULL,
  total INTEGER NOT NULL,
  content BLOB NOT NULL
) STRICT;
CREATE TABLE host_capabilities (
  host INTEGER NOT NULL REFERENCES hosts,
  capability TEXT NOT NULL,
  PRIMARY KEY (host, capability)
) STRICT, WITHOUT ROWID;
CREATE TABLE host_facts (
  host_facts INTEGER PRIMARY KEY,
  host INTEGER NOT NULL REFERENCES hosts,
  facts INTEGER NOT NULL REFERENCES facts,
  since_utc INTEGER NOT NULL
) STRICT;
CREATE TABLE host_labels (
  host INTEGER NOT NULL REFERENCES hosts,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (host, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE hosts (
  host INTEGER PRIMARY KEY,
  host_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  boot_id TEXT NOT NULL,
  agent_version TEXT NOT NULL,
  facts INTEGER NOT NULL REFERENCES facts,
  first_seen_utc INTEGER NOT NULL,
  last_seen_utc INTEGER NOT NULL
) STRICT;
CREATE TABLE identity (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  store_id TEXT NOT NULL,
  created_utc INTEGER NOT NULL
) STRICT;
CREATE TABLE inert_switches (
  attempt INTEGER NOT NULL REFERENCES attempts,
  name TEXT NOT NULL,
  PRIMARY KEY (attempt, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE metrics (
  metric INTEGER PRIMARY KEY,
  metric_id TEXT NOT NULL,
  workload TEXT NOT NULL,
  name TEXT NOT NULL,
  unit TEXT NOT NULL,
  reducer TEXT NOT NULL,
  better TEXT NOT NULL,
  UNIQUE (metric_id, better)
) STRICT;
CREATE TABLE orphans (
  orphan INTEGER PRIMARY KEY,
  host_id TEXT NOT NULL,
  attempt_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  received_utc INTEGER NOT NULL,
  frame BLOB NOT NULL,
  UNIQUE (attempt_id, sequence)
) STRICT;
CREATE TABLE outputs (
  output INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL REFERENCES attempts,
  sequence INTEGER NOT NULL,
  stream TEXT NOT NULL,
  omitted_bytes INTEGER NOT NULL,
  content BLOB NOT NULL
) STRICT;
CREATE TABLE placements (
  attempt INTEGER NOT NULL REFERENCES attempts,
  memory TEXT NOT NULL,
  evidence TEXT NOT NULL,
  node INTEGER NOT NULL,
  pages INTEGER NOT NULL,
  PRIMARY KEY (attempt, memory, evidence, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE resolved_values (
  attempt INTEGER NOT NULL REFERENCES attempts,
  name TEXT NOT NULL,
  as_written TEXT NOT NULL,
  resolved TEXT NOT NULL,
  PRIMARY KEY (attempt, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_labels (
  run INTEGER NOT NULL REFERENCES runs,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_min_changes (
  run INTEGER NOT NULL REFERENCES runs,
  metric TEXT NOT NULL,
  fraction REAL NOT NULL,
  PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_sets (
  run INTEGER NOT NULL REFERENCES runs,
  position INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_variants (
  run INTEGER NOT NULL REFERENCES runs,
  variant_index INTEGER NOT NULL,
  variant INTEGER NOT NULL REFERENCES variants,
  settings INTEGER NOT NULL REFERENCES settings,
  text TEXT NOT NULL,
  arm TEXT NOT NULL,
  comparison TEXT NOT NULL,
  trial_timeout_ns INTEGER,
  PRIMARY KEY (run, variant_index)
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
  run INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  request_id TEXT UNIQUE,
  sweep TEXT NOT NULL,
  file_name TEXT NOT NULL,
  sweep_yaml TEXT NOT NULL,
  note TEXT NOT NULL,
  priority INTEGER NOT NULL,
  order_kind TEXT NOT NULL,
  order_seed INTEGER NOT NULL,
  compare_factor TEXT NOT NULL,
  compare_baseline TEXT NOT NULL,
  repetitions_min INTEGER NOT NULL,
  repetitions_max INTEGER NOT NULL,
  attempts_limit INTEGER NOT NULL,
  host_wait_ns INTEGER NOT NULL,
  stops_host_on_crash INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_utc INTEGER NOT NULL,
  started_utc INTEGER,
  ended_utc INTEGER
) STRICT;
CREATE TABLE samples (
  attempt INTEGER NOT NULL REFERENCES attempts,
  metric INTEGER NOT NULL REFERENCES metrics,
  value REAL,
  absent_reason TEXT,
  PRIMARY KEY (attempt, metric),
  CHECK ((value IS NULL) <> (absent_reason IS NULL))
) STRICT, WITHOUT ROWID;
CREATE TABLE self_checks (
  attempt INTEGER NOT NULL REFERENCES attempts,
  name TEXT NOT NULL,
  passed INTEGER NOT NULL,
  expected REAL,
  measured REAL,
  tolerance REAL,
  PRIMARY KEY (attempt, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE setting_values (
  settings INTEGER NOT NULL REFERENCES settings,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  value ANY NOT NULL,
  PRIMARY KEY (settings, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (
  settings INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  workload TEXT NOT NULL,
  workload_version INTEGER NOT NULL,
  target TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE TABLE trials (
  trial INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES runs,
  cell INTEGER NOT NULL REFERENCES cells,
  trial_index INTEGER NOT NULL,
  block INTEGER NOT NULL,
  position INTEGER NOT NULL,
  state TEXT NOT NULL,
  UNIQUE (cell, trial_index)
) STRICT;
CREATE TABLE variants (
  variant INTEGER PRIMARY KEY,
  variant_id TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX attempts_by_run ON attempts (run);
CREATE INDEX cells_by_series ON cells (variant, host);
CREATE INDEX histograms_by_attempt ON histograms (attempt);
CREATE INDEX host_facts_by_host ON host_facts (host, since_utc);
CREATE INDEX outputs_by_attempt ON outputs (attempt);
CREATE INDEX runs_active ON runs (run) WHERE state IN ('queued', 'running', 'paused');
CREATE INDEX runs_by_sweep ON runs (sweep, created_utc);
CREATE INDEX runs_by_time ON runs (created_utc);
CREATE INDEX trials_by_state ON trials (run, state);
