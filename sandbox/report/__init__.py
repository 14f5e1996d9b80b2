"""What a worker reports of a run: values, errors and hints."""
