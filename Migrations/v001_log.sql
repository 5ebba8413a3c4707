-- The log, version 1.
--
-- Events and facts share one gapless count of sequences that begins at 1. Beside the unique id the
-- event table has no index on purpose: time, kind, author and tag are indexed in the cache, and
-- every further index here halves the rate of ingest.

PRAGMA application_id = 0x534b4550;

CREATE TABLE meta (
  key TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE relay (
  id INTEGER PRIMARY KEY,
  url TEXT NOT NULL UNIQUE
) STRICT;

-- `relay` is the one that served the event first; null: written here, or imported from a file.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  pubkey BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  tags TEXT NOT NULL,
  content TEXT NOT NULL,
  sig BLOB NOT NULL,
  id_form INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  relay INTEGER
) STRICT;

-- Further relays that served an event, and when first.
CREATE TABLE provenance (
  event INTEGER NOT NULL,
  relay INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  PRIMARY KEY (event, relay)
) STRICT, WITHOUT ROWID;

-- What is known beside the events. `type` says which of the other columns are used.
CREATE TABLE fact (
  seq INTEGER PRIMARY KEY,
  type INTEGER NOT NULL,
  event BLOB,
  other BLOB,
  relay INTEGER,
  value BLOB,
  noted_at INTEGER NOT NULL
) STRICT;

-- Messages written here. The event of a message is in `event` from the moment it is written.
CREATE TABLE message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event BLOB NOT NULL UNIQUE,
  channel TEXT,
  token TEXT UNIQUE,
  waits_for INTEGER,
  written_at INTEGER NOT NULL,
  discarded_at INTEGER
) STRICT;

CREATE TABLE delivery (
  message INTEGER NOT NULL,
  relay INTEGER NOT NULL,
  event BLOB NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  reason TEXT,
  next_attempt_at INTEGER,
  handed_at INTEGER,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (message, relay)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_unsent ON delivery (message) WHERE state <> 'sent';

-- The earlier ids of messages that were given a new date.
CREATE TABLE redating (
  old BLOB NOT NULL PRIMARY KEY,
  new BLOB NOT NULL,
  message INTEGER NOT NULL,
  redated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE scope (
  id INTEGER PRIMARY KEY,
  filter TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE coverage (
  relay INTEGER NOT NULL,
  scope INTEGER NOT NULL,
  from_at INTEGER NOT NULL,
  to_at INTEGER NOT NULL,
  proved_at INTEGER NOT NULL,
  method TEXT NOT NULL,
  PRIMARY KEY (relay, scope, from_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE gap (
  relay INTEGER NOT NULL,
  scope INTEGER NOT NULL,
  from_at INTEGER NOT NULL,
  to_at INTEGER NOT NULL,
  why TEXT NOT NULL,
  PRIMARY KEY (relay, scope, from_at)
) STRICT, WITHOUT ROWID;

-- The last of what was refused at the door; the counts are kept apart, and are never cut.
CREATE TABLE reject (
  number INTEGER PRIMARY KEY,
  relay INTEGER,
  event TEXT,
  reason TEXT NOT NULL,
  detail TEXT,
  line INTEGER,
  rejected_at INTEGER NOT NULL
) STRICT;

-- Relay 0 stands for none.
CREATE TABLE reject_count (
  relay INTEGER NOT NULL,
  reason TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (relay, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE setting (
  key TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
