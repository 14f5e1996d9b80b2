"""The small model that finds names and addresses in prose, and the gates that decide when its answer counts."""
