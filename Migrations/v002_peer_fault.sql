-- What relays sent that they should not have, beside the events refused at the door (reject_count):
-- counts by reason, so that `status` tells of a relay that lies after the process that met it.

CREATE TABLE peer_fault (
  relay INTEGER NOT NULL,
  reason TEXT NOT NULL,
  count INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (relay, reason)
) STRICT, WITHOUT ROWID;
