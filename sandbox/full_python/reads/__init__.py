"""What full Python reads of the workspace, where the host has to know what it holds."""
