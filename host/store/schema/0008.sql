-- The model that the reply names, where it is not the one that was asked: a router chose it, or the name is an alias. Null in
-- rows of earlier versions.
ALTER TABLE requests ADD COLUMN answered_by TEXT;
