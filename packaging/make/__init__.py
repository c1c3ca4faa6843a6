"""What scripts/package makes of one built program: a module for each kind of package, and what they share."""
