"""Where the files of a workspace are: a folder, or an object store that several servers share."""
