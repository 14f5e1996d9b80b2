"""Tables and arrays that runs show, and files of them in the workspace."""
