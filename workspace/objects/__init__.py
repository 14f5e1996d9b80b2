"""The workspace in an object store: S3, Google Cloud Storage or Azure, with a folder of this process as its cache."""
